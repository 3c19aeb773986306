import type { Column, Delta, Order, Row, Snapshot } from './frames.js';

/** A window of a table at one moment; columns and rows always belong together. It is frozen, and so are its rows. */
export interface TableUpdate {
  readonly table: string;
  readonly columns: readonly Column[];
  readonly keys: readonly string[];
  readonly rows: readonly Row[];
  /** How many rows the whole table has, or how many of them the filter and the search leave. */
  readonly total: number;
  readonly offset: number;
  /** From which end of the table the offset counts. */
  readonly order: Order;
  readonly generation: string | null;
  /** Since when the rows may be out of date, because the server or the table is away. */
  readonly staleSince: Date | null;
  /** Why, in words. */
  readonly problem: string | null;
}

/** Since when and why rows are stale. */
export interface Away {
  readonly since: Date;
  readonly problem: string;
}

/** A frame does not continue the one before. */
export class Gap extends Error {
  override readonly name = 'Gap';
}

/** What there is to show before the first rows. */
export function nothingOf(table: string, order: Order = 'arrival'): TableUpdate {
  return frozen({
    table,
    columns: [],
    keys: [],
    rows: [],
    total: 0,
    offset: 0,
    order,
    generation: null,
    staleSince: null,
    problem: null,
  });
}

/** The same rows, as stale; the time of an earlier mark stays. */
export function marked(update: TableUpdate, { since, problem }: Away): TableUpdate {
  return Object.freeze({ ...update, staleSince: update.staleSince ?? since, problem });
}

/** The client's copy of a window on the server: takes the frames of one subscription. Rows that do not change stay the same. */
export class WindowCopy {
  #version = 0;
  #update: TableUpdate;

  constructor(table: string, order: Order = 'arrival') {
    this.#update = nothingOf(table, order);
  }

  /** The update after the frame; throws a Gap if a frame before it is missing. */
  take(frame: Snapshot | Delta): TableUpdate {
    const expected = this.#version + 1;
    if (frame.version !== expected || (expected === 1 && frame.ev === 'delta')) {
      const found = `${frame.ev} ${frame.version}`;
      throw new Gap(`expected version ${expected} of ${this.#update.table}, found ${found}`);
    }
    this.#version = expected;
    this.#update = frame.ev === 'snapshot' ? this.#replaced(frame) : this.#patched(frame);
    return this.#update;
  }

  #replaced({ columns, keys, rows, total, offset, generation }: Snapshot): TableUpdate {
    for (const row of rows) {
      Object.freeze(row);
    }
    return frozen({ ...this.#update, columns, keys, rows, total, offset, generation });
  }

  #patched({ rows: changes, drop, insert, total }: Delta): TableUpdate {
    // The delta puts rows into the places in front.
    const keys = [...Array<string>(insert).fill(''), ...this.#update.keys];
    const rows = [...Array<Row>(insert).fill([]), ...this.#update.rows];
    for (const [index, key, row] of changes) {
      if (index > rows.length) {
        const expected = `expected a row of ${this.#update.table} up to index ${rows.length}`;
        throw new Gap(`${expected}, found ${index}`);
      }
      keys[index] = key;
      rows[index] = Object.freeze(row);
    }
    keys.length = rows.length = Math.max(0, rows.length - drop);
    return frozen({ ...this.#update, keys, rows, total });
  }
}

function frozen(update: TableUpdate): TableUpdate {
  Object.freeze(update.columns);
  Object.freeze(update.keys);
  Object.freeze(update.rows);
  return Object.freeze(update);
}
