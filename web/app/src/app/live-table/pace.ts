/** Passes on at once what comes after a rest. Of what comes during a rest, the newest is passed on at its end. */
export class Pace<T> {
  private waiting: { readonly value: T } | null = null;
  private resting: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly restMs: number,
    private readonly pass: (value: T) => void,
  ) {}

  take(value: T): void {
    if (this.resting !== undefined) {
      this.waiting = { value };
      return;
    }
    this.resting = setTimeout(() => {
      const waiting = this.waiting;
      this.restart();
      if (waiting !== null) this.take(waiting.value);
    }, this.restMs);
    this.pass(value);
  }

  /** Forgets what waits: nobody wants it any more. */
  restart(): void {
    clearTimeout(this.resting);
    this.resting = undefined;
    this.waiting = null;
  }
}
