type Tell = () => void;

/** Calls listeners when the work at hand is done, each once, however often it was scheduled meanwhile. */
export class Notifier {
  readonly #due = new Set<Tell>();
  #isScheduled = false;

  schedule(tell: Tell): void {
    this.#due.add(tell);
    if (!this.#isScheduled) {
      this.#isScheduled = true;
      queueMicrotask(() => {
        this.#flush();
      });
    }
  }

  cancel(tell: Tell): void {
    this.#due.delete(tell);
  }

  #flush(): void {
    for (const tell of this.#due) {
      this.#due.delete(tell);
      try {
        tell();
      } catch (error) {
        console.error('table-hub: a listener failed', error);
      }
    }
    this.#isScheduled = false;
  }
}
