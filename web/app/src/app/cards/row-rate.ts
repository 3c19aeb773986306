import type { TableUpdate } from 'table-hub';

const SAMPLES = 60;

/** How many rows came in each of the last seconds. */
export class RowRate {
  private total: number | null = null;
  private generation: string | null = null;
  private came = 0;
  private seconds: number[] = [];

  /** Hears of an update. */
  take({ total, generation, columns }: TableUpdate): void {
    if (columns.length === 0) return;
    // Another generation has all its rows at once.
    if (this.total !== null && generation === this.generation) this.came += Math.max(0, total - this.total);
    this.total = total;
    this.generation = generation;
  }

  /** A second is over: what came in each, the last one at the end. */
  tick(): readonly number[] {
    if (this.total === null) return this.seconds;
    this.seconds = [...this.seconds, this.came].slice(-SAMPLES);
    this.came = 0;
    return this.seconds;
  }
}
