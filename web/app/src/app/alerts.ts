import { Injectable, computed, effect, inject, signal, untracked } from '@angular/core';
import type { TableUpdate } from 'table-hub';
import { BoardPulse } from './board-pulse';
import { LiveTableService } from './live-table.service';
import { ALERTS_TABLE } from './own-tables';
import { Session } from './session';

/** Of more rows, the ones that were raised last are marked. */
const MOST_MARKED = 2_000;
const NONE: ReadonlySet<string> = new Set();

/** The alerts that are raised: how many, and for which rows. */
@Injectable({ providedIn: 'root' })
export class Alerts {
  private readonly session = inject(Session);
  private readonly tables = inject(LiveTableService);
  private readonly pulse = inject(BoardPulse);
  private readonly raised = signal<ReadonlyMap<string, ReadonlySet<string>>>(new Map());
  private readonly count = signal<number | null>(null);
  private readonly areThere = computed(() => (this.pulse.latest()?.alerts ?? null) !== null);

  /** How many are raised; null where the board has no alerts, or the key does not show them. */
  readonly total = this.count.asReadonly();

  constructor() {
    effect((onCleanup) => {
      if (this.session.hub() === null || !this.areThere()) return;
      const subscription = untracked(() =>
        this.tables.subscribe(
          ALERTS_TABLE,
          (update) => {
            this.take(update);
          },
          { size: MOST_MARKED, sort: [['ts', 'desc']] },
        ),
      );
      onCleanup(() => {
        subscription.unsubscribe();
        this.count.set(null);
        this.raised.set(new Map());
      });
    });
  }

  /** The keys of the rows of a table for which an alert is raised. */
  of(table: string): ReadonlySet<string> {
    return this.raised().get(table) ?? NONE;
  }

  private take({ columns, rows, total }: TableUpdate): void {
    if (columns.length === 0) return;
    const [table, key] = ['table', 'key'].map((name) => columns.findIndex((column) => column.name === name));
    const raised = new Map<string, Set<string>>();
    for (const row of rows) {
      const name = String(row[table ?? -1]);
      raised.set(name, (raised.get(name) ?? new Set()).add(String(row[key ?? -1])));
    }
    this.count.set(total);
    this.raised.set(raised);
  }
}
