import { Injectable, effect, inject, signal, untracked } from '@angular/core';
import type { TableUpdate } from 'table-hub';
import { boardStatus } from './control-panel/board-status';
import { LiveTableService } from './live-table.service';
import { Session } from './session';

/** Phases in which nobody fills the tables. */
const STANDING_STILL = new Set(['stale', 'restarting', 'starting']);

/** Since when and why the tables stand still although the server is there. */
export interface StandStill {
  readonly since: Date;
  readonly reason: string;
}

/** Whether the pipeline fills the tables. */
@Injectable({ providedIn: 'root' })
export class BoardHealth {
  private readonly session = inject(Session);
  private readonly tables = inject(LiveTableService);
  private readonly found = signal<StandStill | null>(null);

  readonly standStill = this.found.asReadonly();

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
      });
    });
  }

  private take(update: TableUpdate): void {
    const status = boardStatus(update);
    if (status === null) return;
    if (!STANDING_STILL.has(status.phase)) this.found.set(null);
    else
      this.found.update((before) => ({
        since: before?.since ?? new Date(),
        reason: status.message || 'the pipeline is starting',
      }));
  }
}
