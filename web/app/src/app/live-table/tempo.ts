import type { Row, TableUpdate } from 'table-hub';
import { isSame } from './rows';

const SPAN_MS = 5_000;

/** How fast a table changes, and how old its newest row is, as far as a window of it shows. */
export class Tempo {
  private before: TableUpdate | null = null;
  private changes: { at: number; rows: number }[] = [];
  private newestAt: number | null = null;

  /** Another filter or search is asked for: what it lets through has not come now. */
  restart(): void {
    this.before = null;
  }

  /** Hears of an update. */
  take(update: TableUpdate, now: number): void {
    const { before } = this;
    this.before = update;
    if (before?.generation === update.generation && update.staleSince === null) {
      const came = Math.max(0, update.total - before.total);
      const rows = came + changedRows(before, update);
      if (rows > 0) this.changes.push({ at: now, rows });
      if (came > 0) this.newestAt = now;
    }
    const stamp = newestStamp(update);
    // A window that does not reach the end of the table cannot know its newest row.
    const hasNewest =
      update.order === 'newest' ? update.offset === 0 : update.offset + update.rows.length >= update.total;
    if (stamp !== null && hasNewest) this.newestAt = stamp;
  }

  /** Rows that changed or came in a second, over the last few. */
  rate(now: number): number {
    this.changes = this.changes.filter(({ at }) => at > now - SPAN_MS);
    return this.changes.reduce((sum, { rows }) => sum + rows, 0) / (SPAN_MS / 1000);
  }

  /** In milliseconds; null where nothing tells. */
  age(now: number): number | null {
    return this.newestAt === null ? null : Math.max(0, now - this.newestAt);
  }
}

/** Neither rows that moved nor rows that were sent again have changed. */
function changedRows(before: TableUpdate, after: TableUpdate): number {
  let known: Map<string | undefined, Row | undefined> | null = null;
  return after.rows.filter((row, place) => {
    if (row === before.rows[place]) return false;
    if (before.keys[place] === after.keys[place]) return !isSame(before.rows[place] ?? [], row);
    // Rows have moved.
    known ??= new Map(before.keys.map((key, each) => [key, before.rows[each]]));
    const old = known.get(after.keys[place]);
    return old !== undefined && !isSame(old, row);
  }).length;
}

function newestStamp(update: TableUpdate): number | null {
  const place = update.columns.findIndex(({ name, type }) => name === 'ts' && type === 'timestamp');
  if (place < 0) return null;
  const stamps = update.rows.map((row) => row[place]).filter((value) => typeof value === 'string');
  // ISO texts of one length sort as the times do.
  const newest = stamps.reduce((latest, stamp) => (stamp > latest ? stamp : latest), '');
  return newest === '' ? null : Date.parse(newest);
}
