export const FIRST_MS = 150;
export const LONGEST_MS = 10_000;

/** How long to wait before the next try: the first time FIRST_MS, then up to twice as long, at most LONGEST_MS. */
export class Backoff {
  readonly #random: () => number;
  #tries = 0;

  constructor(random: () => number) {
    this.#random = random;
  }

  next(): number {
    const ceiling = Math.min(LONGEST_MS, FIRST_MS * 2 ** this.#tries);
    this.#tries += 1;
    // Somewhere in the upper half, so that many clients of one server do not come back all at once.
    return this.#tries === 1 ? ceiling : ceiling * (0.5 + this.#random() / 2);
  }

  /** It worked: the next wait is a first one again. */
  reset(): void {
    this.#tries = 0;
  }
}
