import type { TableUpdate } from 'table-hub';

const SPAN_MS = 5_000;

/** How fast a table changes, and how old its newest row is, as far as a window of it shows. */
export class Tempo {
  private before: TableUpdate | null = null;
  private changes: { at: number; rows: number }[] = [];
  private newestAt: number | null = null;

  /** Hears of an update. */
  take(update: TableUpdate, now: number): void {
    const { before } = this;
    this.before = update;
    if (before?.generation === update.generation && before.offset === update.offset) {
      const came = Math.max(0, update.total - before.total);
      const changed = update.rows.filter(
        (row, place) => place < before.rows.length && row !== before.rows[place],
      ).length;
      if (came + changed > 0 && update.staleSince === null) this.changes.push({ at: now, rows: came + changed });
      if (came > 0) this.newestAt = now;
    }
    const stamp = newestStamp(update);
    // A window that does not reach the end of the table cannot know its newest row.
    if (stamp !== null && update.offset + update.rows.length >= update.total) this.newestAt = stamp;
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

function newestStamp(update: TableUpdate): number | null {
  const place = update.columns.findIndex(({ name, type }) => name === 'ts' && type === 'timestamp');
  if (place < 0) return null;
  const stamps = update.rows.map((row) => row[place]).filter((value) => typeof value === 'string');
  // ISO texts of one length sort as the times do.
  const newest = stamps.reduce((latest, stamp) => (stamp > latest ? stamp : latest), '');
  return newest === '' ? null : Date.parse(newest);
}
