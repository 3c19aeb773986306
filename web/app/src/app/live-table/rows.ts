import type { TableUpdate } from 'table-hub';
import type { GridRow } from './columns';

/** What the grid has to do to show another update. */
export type Step =
  { kind: 'none' } | { kind: 'replace'; rows: GridRow[] } | { kind: 'patch'; update: GridRow[]; add: GridRow[] };

/** The rows of a grid, which stay the same objects for as long as their values do. */
export class Rows {
  private shown: GridRow[] = [];

  /** How to come from what is shown to the update. */
  take({ keys, rows }: TableUpdate): Step {
    const before = this.shown;
    const known = new Map(before.map((row) => [row.key, row]));
    const after = rows.map((values, place): GridRow => {
      const key = keys[place] ?? String(place);
      const old = known.get(key);
      return old?.values === values ? old : { key, values };
    });
    this.shown = after;
    const keptPlaces = after.length >= before.length && before.every((row, place) => row.key === after[place]?.key);
    if (!keptPlaces) return { kind: 'replace', rows: after };
    const update = after.filter((row, place) => place < before.length && row !== before[place]);
    const add = after.slice(before.length);
    return update.length + add.length ? { kind: 'patch', update, add } : { kind: 'none' };
  }
}
