import type { TableUpdate } from 'table-hub';

const SAMPLES = 60;

/** How many rows came a second, at each of the last beats. */
export class RowRate {
  private total: number | null = null;
  private generation: string | null = null;
  private came = 0;
  private since: number | null = null;
  private rates: readonly number[] = [];

  /** Hears of an update. */
  take({ total, generation, columns }: TableUpdate): void {
    if (columns.length === 0) return;
    // Another generation has all its rows at once.
    if (this.total !== null && generation === this.generation) this.came += Math.max(0, total - this.total);
    this.total = total;
    this.generation = generation;
  }

  /** A beat: what came a second until each, the last one at the end; a busy page beats late. */
  tick(now: number): readonly number[] {
    if (this.total === null) return this.rates;
    const elapsed = this.since === null ? 0 : now - this.since;
    if (elapsed > 0) this.rates = [...this.rates, (this.came * 1_000) / elapsed].slice(-SAMPLES);
    this.came = 0;
    this.since = now;
    return this.rates;
  }
}
