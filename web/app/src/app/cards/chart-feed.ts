import { type Signal, computed, effect, inject, signal } from '@angular/core';
import type { Query } from 'table-hub';
import { type ChartData, ServerApi } from '../server-api';

const REFRESH_MS = 2_000;

/** What to draw: a column of a table, over the rows that a query lets through. */
export interface Charted {
  readonly table: string;
  readonly column: string;
  readonly query: Query;
}

/** The figures of a chart, which follow the table while somebody looks; where they cannot be had, why. */
export function chartFeed(charted: () => Charted | null): { data: Signal<ChartData | null>; problem: Signal<string> } {
  const server = inject(ServerApi);
  const data = signal<ChartData | null>(null);
  const problem = signal('');

  async function look({ table, column, query }: Charted, isOver: () => boolean): Promise<void> {
    if (document.hidden) return;
    try {
      const found = await server.chart(table, column, query);
      if (isOver()) return;
      data.set(found);
      problem.set('');
    } catch (error) {
      if (!isOver()) problem.set(error instanceof Error ? error.message : String(error));
    }
  }

  const wanted = computed(charted, { equal: (one, other) => JSON.stringify(one) === JSON.stringify(other) });

  effect((onCleanup) => {
    const asked = wanted();
    if (asked === null) return;
    let isOver = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const follow = async () => {
      await look(asked, () => isOver);

      if (!isOver) timer = setTimeout(() => void follow(), REFRESH_MS);
    };
    void follow();
    onCleanup(() => {
      isOver = true;
      clearTimeout(timer);
    });
  });
  return { data: data.asReadonly(), problem: problem.asReadonly() };
}

/** The query of a card, which it keeps as JSON. */
export function queryOf(text: string): Query {
  try {
    const found: unknown = JSON.parse(text || '{}');
    return typeof found === 'object' && found !== null ? found : {};
  } catch {
    return {};
  }
}
