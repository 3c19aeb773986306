import { DEFAULT_SIZE, MAX_SIZE, type Filter, type Order, type Sort, type Subscribe } from './frames.js';

/** Which rows, in which order; the server sorts, filters and searches the whole table. */
export interface Query {
  /** Where there is no sort: the newest rows first, or the oldest, which is the default. */
  order?: Order;
  sort?: Sort;
  filter?: Filter;
  search?: string;
  /** Pins a generation; null is the live one. */
  generation?: string | null;
}

export interface WindowQuery extends Query {
  offset?: number;
  size?: number;
}

/** What to subscribe to, still without an id. */
export type Asked = Omit<Subscribe, 'op' | 'id'>;

/** What the caller wants, checked, and a copy that no later change of the caller's arrays reaches. */
export function ask(wanted: Pick<Asked, 'table'> & Partial<Asked>): Asked {
  const asked: Asked = {
    table: checkedName(wanted.table),
    ...checkedWindow(wanted.offset ?? 0, wanted.size ?? DEFAULT_SIZE),
    order: wanted.order ?? 'arrival',
    sort: wanted.sort?.length ? wanted.sort : null,
    filter: wanted.filter?.length ? wanted.filter : null,
    search: wanted.search?.length ? wanted.search : null,
    generation: wanted.generation ?? null,
  };
  return JSON.parse(keyOf(asked)) as Asked;
}

/** The same for all who want the same. */
export function keyOf(asked: Asked): string {
  return JSON.stringify(asked);
}

function checkedName(table: string): string {
  if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(table)) {
    const expected = 'expected a table name of letters, digits and "_" like "final_ui"';
    throw new Error(`${expected}, found "${table.slice(0, 100)}"`);
  }
  return table;
}

function checkedWindow(offset: number, size: number): { offset: number; size: number } {
  if (!Number.isInteger(offset) || offset < 0) {
    throw new Error(`window: expected an offset from 0, found ${offset}`);
  }
  if (!Number.isInteger(size) || size < 1 || size > MAX_SIZE) {
    throw new Error(`window: expected a size from 1 to ${MAX_SIZE}, found ${size}`);
  }
  return { offset, size };
}
