import { Injectable, computed, effect, inject, signal, untracked } from '@angular/core';
import type { TableUpdate } from 'table-hub';
import { BoardPulse } from './board-pulse';
import { type BoardStatus, boardStatus } from './control-panel/board-status';
import { LiveTableService } from './live-table.service';
import { Session } from './session';

/** Phases in which nobody fills the tables. */
const STANDING_STILL = new Set(['stale', 'restarting', 'starting', 'away']);
/** How long a pipeline that is back may take until its first rows come. */
const HEALING_MS = 10_000;

/** Since when and why the tables stand still although the server is there. */
export interface StandStill {
  readonly since: Date;
  readonly reason: string;
}

/** What the board does, in a word or two; `detail` is the whole sentence, where there is more to say. */
export interface BoardState {
  readonly kind: 'good' | 'busy' | 'bad';
  readonly text: string;
  readonly detail: string;
}

/** Whether the pipeline fills the tables. */
@Injectable({ providedIn: 'root' })
export class BoardHealth {
  private readonly session = inject(Session);
  private readonly tables = inject(LiveTableService);
  private readonly pulse = inject(BoardPulse);
  private readonly found = signal<StandStill | null>(null);
  private readonly progress = signal('');
  private readonly status = signal<BoardStatus | null>(null);
  private readonly isHealing = signal(false);
  private healing: ReturnType<typeof setTimeout> | undefined;
  private eventsBefore = 0;

  readonly standStill = this.found.asReadonly();
  /** How far the very first build is, whose tables are shown as they fill; empty once there was a live board. */
  readonly firstBuild = this.progress.asReadonly();
  /** What the board does; null while nothing tells, or to a key that is not shown it. */
  readonly state = computed(() => {
    const status = this.status();
    return status === null ? null : stateOf(status, this.isHealing());
  });

  constructor() {
    effect((onCleanup) => {
      if (this.session.hub() === null) return;
      const subscription = untracked(() =>
        this.tables.subscribe(
          'orchestrator_status',
          (update) => {
            this.take(update);
          },
          { size: 1 },
        ),
      );
      onCleanup(() => {
        subscription.unsubscribe();
        this.status.set(null);
        this.healed();
      });
    });
    effect(() => {
      const events = this.pulse.latest()?.events ?? 0;
      if (untracked(() => this.isHealing()) && events > this.eventsBefore) this.healed();
    });
  }

  private take(update: TableUpdate): void {
    const status = boardStatus(update);
    if (status === null) return;
    this.status.set(status);
    const isFirst = status.generation === '';
    this.progress.set(status.phase === 'building' && isFirst ? status.message : '');
    if (STANDING_STILL.has(status.phase) && !isFirst) {
      this.stopHealing();
      this.found.update((before) => ({
        since: before?.since ?? new Date(),
        reason: status.message || 'the pipeline is starting',
      }));
    } else if (status.phase === 'live' && this.found() !== null && !this.isHealing()) {
      this.heal();
    } else if (status.phase !== 'live') {
      this.healed();
    }
  }

  /** The pipeline is back; its tables are up to date when the first events come, or when none do for a while. */
  private heal(): void {
    this.eventsBefore = this.pulse.latest()?.events ?? 0;
    this.isHealing.set(true);
    this.found.update((before) => before && { ...before, reason: 'the pipeline is back and catches up' });
    this.healing = setTimeout(() => {
      this.healed();
    }, HEALING_MS);
  }

  private healed(): void {
    this.stopHealing();
    this.found.set(null);
  }

  private stopHealing(): void {
    clearTimeout(this.healing);
    this.isHealing.set(false);
  }
}

/** What a status means for people who look. */
export function stateOf({ phase, message, generation, build }: BoardStatus, isHealing = false): BoardState {
  switch (phase) {
    case 'live':
      return isHealing
        ? { kind: 'busy', text: 'catching up', detail: 'The pipeline is back and catches up.' }
        : { kind: 'good', text: 'live', detail: message };
    case 'building':
      if (generation !== '') return { kind: 'good', text: 'live', detail: '' };
      return { kind: 'busy', text: build?.percent ? `building, ${build.percent} %` : 'starting', detail: message };
    case 'starting':
      return {
        kind: 'busy',
        text: 'starting',
        detail: message || 'The pipeline is starting; this takes some seconds.',
      };
    case 'waiting':
      return { kind: 'busy', text: 'waiting', detail: message };
    case 'restarting':
      return { kind: 'bad', text: 'pipeline down', detail: message };
    case 'away':
      return { kind: 'bad', text: 'Kafka away', detail: message };
    case 'stale':
      return { kind: 'bad', text: 'pipeline silent', detail: message };
    default:
      return { kind: 'bad', text: phase, detail: message };
  }
}
