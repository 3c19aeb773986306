import { type TableUpdate, type Value, WIRE_TYPES } from 'table-hub';

/** Which way a number went, and when. */
export interface Trend {
  readonly isUp: boolean;
  readonly at: number;
}

/** A row of the grid. */
export interface GridRow {
  readonly key: string;
  readonly values: readonly Value[];
  /** When it was seen to come; null for one that was there. */
  readonly cameAt: number | null;
  /** By the place of the column. */
  readonly trends: ReadonlyMap<number, Trend>;
}

/** What the grid has to do to show another update. */
export type Step =
  | { kind: 'none' }
  | { kind: 'replace'; rows: GridRow[] }
  | { kind: 'patch'; update: GridRow[]; insert: GridRow[]; add: GridRow[]; remove: GridRow[] };

const NO_TRENDS: ReadonlyMap<number, Trend> = new Map();

/** The rows of a grid, which stay the same objects for as long as their values do. */
export class Rows {
  private shown: GridRow[] = [];

  /** How to come from what is shown to the update. */
  take({ columns, keys, rows }: TableUpdate, now: number): Step {
    const before = this.shown;
    const known = new Map(before.map((row) => [row.key, row]));
    const numbers = columns.flatMap(({ type }, place) => (WIRE_TYPES[type].isNumber ? [place] : []));
    const after = rows.map((values, place): GridRow => {
      const key = keys[place] ?? String(place);
      const old = known.get(key);
      if (old === undefined) return { key, values, cameAt: null, trends: NO_TRENDS };
      return isSame(old.values, values) ? old : { ...old, values, trends: trends(old, values, numbers, now) };
    });
    const step = stepOf(before, after, known);
    if (step.kind === 'patch') {
      step.insert = step.insert.map((row) => ({ ...row, cameAt: now }));
      after.splice(0, step.insert.length, ...step.insert);
    }
    this.shown = after;
    return step;
  }
}

function stepOf(before: GridRow[], after: GridRow[], known: ReadonlyMap<string, GridRow>): Step {
  const first = before[0];
  if (first === undefined) return after.length ? { kind: 'replace', rows: after } : { kind: 'none' };
  const insert = after.findIndex(({ key }) => key === first.key);
  const kept = Math.min(before.length, after.length - insert);
  const keepsPlaces =
    insert >= 0 && before.every((row, place) => place >= kept || row.key === after[place + insert]?.key);
  if (!keepsPlaces || after.slice(0, insert).some(({ key }) => known.has(key))) return { kind: 'replace', rows: after };
  const update = after.filter((row, place) => {
    const old = before[place - insert];
    return old !== undefined && row !== old;
  });
  const step = { update, insert: after.slice(0, insert), add: after.slice(insert + kept), remove: before.slice(kept) };
  return Object.values(step).some((rows) => rows.length) ? { kind: 'patch', ...step } : { kind: 'none' };
}

function trends(old: GridRow, values: readonly Value[], numbers: readonly number[], now: number): GridRow['trends'] {
  const found = new Map(old.trends);
  for (const place of numbers) {
    const [one, other] = [old.values[place] ?? null, values[place] ?? null];
    const way = one === null || other === null ? 0 : Number(other) - Number(one);
    if (way) found.set(place, { isUp: way > 0, at: now });
  }
  return found;
}

/** A snapshot brings rows once more that are as they were. */
export function isSame(one: readonly Value[], other: readonly Value[]): boolean {
  return one === other || (one.length === other.length && one.every((value, place) => value === other[place]));
}
