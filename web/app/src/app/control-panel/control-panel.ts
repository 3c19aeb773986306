import { Component, computed, effect, inject, linkedSignal, signal, untracked } from '@angular/core';
import { LiveTableService } from '../live-table.service';
import { shown } from '../live-table/values';
import { ServerApi } from '../server-api';
import { Session } from '../session';
import { type BoardStatus, type ControlRecord, boardStatus, buildProgress, controlRecords } from './board-status';

const SHOWN_RECORDS = 5;
const JOIN_KINDS = ['left', 'inner', 'asof'];

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
  private readonly topics = signal<readonly string[]>([]);

  /** Only an admin's key changes the board; the server sees to it. */
  protected readonly isAdmin = computed(() => this.session.hub()?.role === 'admin');
  protected readonly joinKinds = JOIN_KINDS;
  protected readonly status = signal<BoardStatus | null>(null);
  protected readonly records = signal<readonly ControlRecord[]>([]);
  protected readonly note = signal('');
  protected readonly progress = computed(() => buildProgress(this.status()?.message ?? ''));
  protected readonly lastApplied = computed(() => shown(this.status()?.lastApplied ?? '', 'timestamp'));

  /** What is chosen for each field of a control message; goes back to what is live when that changes. */
  protected readonly chosen = linkedSignal<string, Record<string, string>>({
    source: () => JSON.stringify(liveChoice(this.status())),
    computation: (live) => JSON.parse(live) as Record<string, string>,
  });

  constructor() {
    effect((onCleanup) => {
      if (this.session.hub() === null) return;
      const subscriptions = untracked(() => [
        this.tables.subscribe(
          'orchestrator_status',
          (update) => {
            this.status.set(boardStatus(update) ?? this.status());
          },
          { size: 1 },
        ),
        this.tables.subscribe(
          'control_raw',
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
  }

  /** The topics to choose from: those of the cluster, and the one that is read now in any case. */
  protected choices(topic: string): string[] {
    return [...new Set([topic, ...this.topics()])].filter((name) => name !== '').sort();
  }

  protected choose(field: string, value: string): void {
    this.chosen.update((chosen) => ({ ...chosen, [field]: value }));
  }

  protected async opened(isOpen: boolean): Promise<void> {
    if (!isOpen || !this.isAdmin()) return;
    try {
      this.topics.set(await this.server.topics());
    } catch (error) {
      this.note.set(`The topics are not known: ${reason(error)}`);
    }
  }

  protected async send(event: Event): Promise<void> {
    event.preventDefault();
    try {
      await this.server.control(this.chosen());
      this.note.set('Sent. The grids follow when the new generation is ready.');
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
