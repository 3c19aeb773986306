import { Injectable, computed, effect, inject, signal, untracked } from '@angular/core';
import type { TableUpdate } from 'table-hub';
import { type BoardStatus, boardStatus } from './control-panel/board-status';
import { LiveTableService } from './live-table.service';
import { STATUS_TABLE } from './own-tables';
import { Session } from './session';

/** Phases in which nobody fills the tables. */
const STANDING_STILL = new Set(['stale', 'restarting', 'starting', 'away']);
const CATCHING_UP = 'catching_up';

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
  private readonly found = signal<StandStill | null>(null);
  private readonly progress = signal('');
  private readonly status = signal<BoardStatus | null>(null);

  readonly standStill = this.found.asReadonly();
  /** Why the rows that come are old ones: the very first build, or what was missed; empty when they are new. */
  readonly filling = this.progress.asReadonly();
  /** What the board does; null while nothing tells, or to a key that is not shown it. */
  readonly state = computed(() => {
    const status = this.status();
    return status === null ? null : stateOf(status);
  });

  constructor() {
    effect((onCleanup) => {
      if (this.session.hub() === null) return;
      const subscription = untracked(() =>
        this.tables.subscribe(
          STATUS_TABLE,
          (update) => {
            this.take(update);
          },
          { size: 1 },
        ),
      );
      onCleanup(() => {
        subscription.unsubscribe();
        this.status.set(null);
        this.found.set(null);
      });
    });
  }

  private take(update: TableUpdate): void {
    const status = boardStatus(update);
    if (status === null) return;
    this.status.set(status);
    const isFirst = status.generation === '';
    const isBuilt = status.phase === 'building' && isFirst;
    this.progress.set(isBuilt ? status.message : status.phase === CATCHING_UP ? stateOf(status).text : '');
    const isStill = STANDING_STILL.has(status.phase) && !isFirst;
    this.found.update((before) =>
      isStill ? { since: before?.since ?? new Date(), reason: status.message || 'the pipeline is starting' } : null,
    );
  }
}

/** What a status means for people who look. */
export function stateOf({ phase, message, generation, build }: BoardStatus): BoardState {
  switch (phase) {
    case 'live':
      return { kind: 'good', text: 'live', detail: message };
    case CATCHING_UP:
      return { kind: 'busy', text: 'catching up', detail: message };
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
