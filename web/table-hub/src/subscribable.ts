/** Listeners, counted: when the last one goes, it is no longer used. */
export class Subscribable<Listener> {
  readonly #listeners = new Set<Listener>();

  get listeners(): readonly Listener[] {
    return [...this.#listeners];
  }

  /** Adds a listener; the function that it gives takes the listener away, and is harmless when called again. */
  add(listener: Listener): () => void {
    this.#listeners.add(listener);
    return () => {
      if (this.#listeners.delete(listener) && this.#listeners.size === 0) {
        this.onUnused();
      }
    };
  }

  protected onUnused(): void {
    // For those that have something to put away.
  }
}
