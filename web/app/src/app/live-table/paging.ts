import type { Order, TableUpdate } from 'table-hub';
import { COUNT } from '../count';

/** Which rows are looked at. */
export interface Place {
  readonly order: Order;
  /** How many rows are in front of the page. */
  readonly offset: number;
  readonly size: number;
  /**
   * How many rows the table had when the newest ones were held; null while they slide in. Rows that are held are asked
   * for in order of arrival, where those that come do not move them, and are shown the other way round.
   */
  readonly heldAt: number | null;
}

/** What to ask the server for. */
export function windowOf({ order, offset, size, heldAt }: Place): { order: Order; offset: number; size: number } {
  if (order === 'arrival' || heldAt === null) return { order, offset, size };
  const end = Math.max(1, heldAt - offset);
  const start = Math.max(0, end - size);
  return { order: 'arrival', offset: start, size: end - start };
}

/** The update as it is shown at the place. */
export function shownAt(update: TableUpdate, { order, heldAt }: Place): TableUpdate {
  if (order === 'newest' && update.order === 'newest' && heldAt !== null && update.offset === 0) {
    // The server has not heard yet that they are held.
    const came = Math.max(0, update.total - heldAt);
    return came === 0 ? update : { ...update, keys: update.keys.slice(came), rows: update.rows.slice(came) };
  }
  if (order === update.order || order === 'arrival') return update;
  const [keys, rows] = [update.keys.toReversed(), update.rows.toReversed()];
  return { ...update, keys, rows, offset: Math.max(0, (heldAt ?? update.total) - update.offset - rows.length) };
}

/** The offset of the last page. */
export function lastPage(total: number, size: number): number {
  return total > 0 ? Math.floor((total - 1) / size) * size : 0;
}

/** Which rows are shown, of how many. */
export function rangeText({ offset, rows }: Pick<TableUpdate, 'offset' | 'rows'>, total: number): string {
  return `rows ${COUNT.format(offset + 1)}–${COUNT.format(offset + rows.length)} of ${COUNT.format(total)}`;
}

/** How many rows came since those that are shown were held. */
export function heldText(count: number): string {
  return count <= 0 ? 'Paused' : `${COUNT.format(count)} new ${count === 1 ? 'row' : 'rows'}`;
}
