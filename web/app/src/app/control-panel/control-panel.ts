import { Component, computed, effect, inject, signal, untracked } from '@angular/core';
import { LiveTableService } from '../live-table.service';
import { shown } from '../live-table/values';
import { CONTROL_TABLE, STATUS_TABLE } from '../own-tables';
import { type Choices, ServerApi } from '../server-api';
import { Session } from '../session';
import { type BoardStatus, type ControlRecord, boardStatus, controlMessage, controlRecords } from './board-status';
import { type Change, joinChange, topicChange } from './swap-preview';

const SHOWN_RECORDS = 5;
const SENT = 'Sent. The grids follow when the new generation is ready.';

/** What the board is made of now, and the way to change it while people watch. */
@Component({
  selector: 'app-control-panel',
  templateUrl: './control-panel.html',
  styleUrl: './control-panel.css',
})
export class ControlPanel {
  private readonly session = inject(Session);
  private readonly tables = inject(LiveTableService);
  private readonly server = inject(ServerApi);
  private readonly offered = signal<Choices>({ topics: [], joinKinds: [] });
  /** What somebody has chosen here, by field of a control message, for as long as it is not live. */
  private readonly picked = signal<Readonly<Record<string, string>>>({});

  /** Only an admin's key changes the board; the server sees to it. */
  protected readonly isAdmin = computed(() => this.session.hub()?.role === 'admin');
  protected readonly status = signal<BoardStatus | null>(null);
  /** The kinds of joins to choose from; before they are known, the one that there is. */
  protected readonly joinKinds = computed(() => {
    const { joinKinds } = this.offered();
    return joinKinds.length > 0 ? joinKinds : [this.status()?.joinType ?? ''];
  });
  protected readonly records = signal<readonly ControlRecord[]>([]);
  protected readonly note = signal('');
  protected readonly isLooking = signal(false);
  /** What the swap would bring, while somebody thinks about it. */
  protected readonly changes = signal<readonly Change[] | null>(null);
  protected readonly progress = computed(() => this.status()?.build ?? null);
  protected readonly lastApplied = computed(() => shown(this.status()?.lastApplied ?? '', 'timestamp'));
  protected readonly chosen = computed(() => ({ ...liveChoice(this.status()), ...this.picked() }));

  constructor() {
    effect((onCleanup) => {
      if (this.session.hub() === null) return;
      const subscriptions = untracked(() => [
        this.tables.subscribe(
          STATUS_TABLE,
          (update) => {
            this.status.set(boardStatus(update) ?? this.status());
          },
          { size: 1 },
        ),
        this.tables.subscribe(
          CONTROL_TABLE,
          (update) => {
            this.records.set(controlRecords(update));
          },
          { size: SHOWN_RECORDS, sort: [['ts', 'desc']] },
        ),
      ]);
      onCleanup(() => {
        for (const subscription of subscriptions) subscription.unsubscribe();
      });
    });
    const answered = computed(() => `${this.status()?.generation ?? ''} ${this.records()[0]?.key ?? ''}`);
    effect(() => {
      // A new generation, or a verdict in the list below, is what becomes of a message that was sent.
      answered();
      untracked(() => {
        this.note.update((note) => (note === SENT ? '' : note));
        const live = liveChoice(this.status());
        const open = Object.entries(this.picked()).filter(([field, value]) => live[field] !== value);
        this.picked.set(Object.fromEntries(open));
      });
    });
  }

  /** The topics to choose from: those of the cluster, and the one that is read now in any case. */
  protected choices(topic: string): string[] {
    return [...new Set([topic, ...this.offered().topics])].filter((name) => name !== '').sort();
  }

  protected choose(field: string, value: string): void {
    this.changes.set(null);
    this.picked.update((picked) => ({ ...picked, [field]: value }));
  }

  protected async opened(isOpen: boolean): Promise<void> {
    if (!isOpen || !this.isAdmin()) return;
    try {
      this.offered.set(await this.server.choices());
    } catch (error) {
      this.note.set(`The topics and joins are not known: ${reason(error)}`);
    }
  }

  /** Looks at what would change, before anything does. */
  protected async preview(event: Event): Promise<void> {
    event.preventDefault();
    const [status, chosen] = [this.status(), this.chosen()];
    if (status === null) return;
    this.isLooking.set(true);
    this.note.set('');
    const asked = status.sources.filter(({ field, topic }) => chosen[field] !== topic);
    const changes = await Promise.all(
      asked.map(({ source, field, topic }) => this.previewOf(source, topic, chosen[field] ?? '')),
    );
    if (chosen.joinType !== status.joinType) changes.push(joinChange(status.joinType, chosen.joinType ?? ''));
    this.changes.set(changes.length > 0 ? changes : [joinChange('', '')]);
    this.isLooking.set(false);
  }

  /** A topic that cannot be looked at is no reason against the swap: the pipeline judges it. */
  private async previewOf(source: string, before: string, topic: string): Promise<Change> {
    try {
      return topicChange(before, await this.server.preview(source, topic));
    } catch (error) {
      const lines = [`The topic cannot be looked at: ${reason(error)}`];
      return { title: `${source}: ${before} → ${topic}`, lines, isDoubtful: true };
    }
  }

  protected cancel(): void {
    this.changes.set(null);
  }

  protected async send(): Promise<void> {
    const status = this.status();
    if (status === null) return;
    this.changes.set(null);
    try {
      await this.server.control(controlMessage(status, this.chosen()));
      this.note.set(SENT);
    } catch (error) {
      this.note.set(`Not sent: ${reason(error)}`);
    }
  }

  protected time(iso: string): string {
    return shown(iso, 'timestamp').slice(0, -4);
  }
}

function liveChoice(status: BoardStatus | null): Record<string, string> {
  if (status === null) return {};
  const topics = status.sources.map(({ field, topic }) => [field, topic] as const);
  return { ...Object.fromEntries(topics), joinType: status.joinType };
}

function reason(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
