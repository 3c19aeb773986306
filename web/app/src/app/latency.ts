import { Injectable } from '@angular/core';
import type { TableUpdate } from 'table-hub';

const SPAN_MS = 10_000;
const CLOCK_MS = 60_000;
/** A row that is older when it comes was not made now: it is history, or its clock is wrong. */
const PLAUSIBLE_MS = 60_000;

/** How long new rows take from their time in Kafka to this page. */
@Injectable({ providedIn: 'root' })
export class Latency {
  /** How far the server's clock is ahead of this browser's, by the quickest answer of late; null until there is one. */
  private clock: { ahead: number; roundTrip: number; at: number } | null = null;
  private samples: { at: number; took: number }[] = [];
  /** Of each table: the newest row that was seen, and since when somebody looks. */
  private readonly looked = new Map<string, { newest: string; since: number }>();

  /** Hears what the server's clock said between asking and its answer. */
  heardClock(asked: number, server: number, answered: number): void {
    const roundTrip = answered - asked;
    if (this.clock !== null && roundTrip > this.clock.roundTrip && answered - this.clock.at < CLOCK_MS) return;
    const ahead = server - (asked + answered) / 2;
    // A difference below half of the round trip may come from the way itself.
    this.clock = { ahead: Math.abs(ahead) <= roundTrip / 2 ? 0 : ahead, roundTrip, at: answered };
  }

  /** Hears of rows as they are handed to those who show them. */
  take({ table, generation, columns, rows, staleSince }: TableUpdate, now = Date.now()): void {
    const place = columns.findIndex(({ name, type }) => name === 'ts' && type === 'timestamp');
    if (place < 0 || staleSince !== null) return;
    const id = `${table} ${generation ?? ''}`;
    const before = this.looked.get(id);
    const since = before?.since ?? now;
    let newest = before?.newest ?? '';
    for (const row of rows) {
      const ts = row[place];
      if (typeof ts !== 'string') continue;
      if (ts > newest) newest = ts;
      if (before !== undefined && ts > before.newest) this.add(now, ts, since);
    }
    if (newest !== '') this.looked.set(id, { newest, since });
  }

  /** What came until now tells nothing of what comes from now on. */
  restart(): void {
    this.samples = [];
    this.looked.clear();
  }

  /** The median of the last ten seconds; null where nothing came that tells. */
  median(now = Date.now()): number | null {
    this.samples = this.samples.filter(({ at }) => at > now - SPAN_MS);
    const sorted = this.samples.map(({ took }) => took).sort((one, other) => one - other);
    return sorted[Math.floor(sorted.length / 2)] ?? null;
  }

  private add(now: number, ts: string, since: number): void {
    if (this.clock === null) return;
    const made = Date.parse(ts) - this.clock.ahead;
    // What was there before was waiting for a page that was not open.
    if (made < since) return;
    const took = now - made;
    if (Math.abs(took) < PLAUSIBLE_MS) this.samples.push({ at: now, took: Math.max(0, took) });
  }
}
