import type { Entry, Watcher } from './entry.js';
import type { Notifier } from './notify.js';
import { type Asked, type Query, ask, keyOf } from './query.js';
import { type Away, type TableUpdate, marked, nothingOf } from './update.js';

export type Listener = (update: TableUpdate) => void;

/** A listener's view of a window. */
export interface Subscription {
  /** What came last; null until there was something. */
  readonly update: TableUpdate | null;
  /**
   * Moves this listener alone; it keeps its rows until those of the new window are there. What the query does not name
   * stays as it is; an empty sort, filter or search takes the one before away.
   */
  setWindow(offset: number, size: number, query?: Query): void;
  /** Ends it; harmless when it has ended. The table stays as it is. */
  unsubscribe(): void;
}

export class TableSubscription implements Subscription, Watcher {
  readonly #find: (asked: Asked) => Entry;
  readonly #notifier: Notifier;
  readonly #tell: () => void;
  #asked: Asked;
  #leave: (() => void) | null;
  #update: TableUpdate | null = null;

  constructor(asked: Asked, listener: Listener, notifier: Notifier, find: (asked: Asked) => Entry) {
    this.#asked = asked;
    this.#find = find;
    this.#notifier = notifier;
    this.#tell = () => {
      if (this.#update !== null) {
        listener(this.#update);
      }
    };
    this.#leave = find(asked).add(this);
  }

  get update(): TableUpdate | null {
    return this.#update;
  }

  setWindow(offset: number, size: number, query: Query = {}): void {
    if (this.#leave === null) {
      throw new Error('expected an open subscription, found a closed one');
    }
    const asked = ask({ ...this.#asked, ...query, offset, size });
    if (keyOf(asked) !== keyOf(this.#asked)) {
      const leave = this.#leave;
      this.#asked = asked;
      // First the new one, so that the server can keep what both have in common.
      this.#leave = this.#find(asked).add(this);
      leave();
    }
  }

  unsubscribe(): void {
    this.#notifier.cancel(this.#tell);
    this.#leave?.();
    this.#leave = null;
  }

  show(update: TableUpdate): void {
    this.#update = update;
    this.#notifier.schedule(this.#tell);
  }

  mark(away: Away): void {
    this.show(marked(this.#update ?? nothingOf(this.#asked.table), away));
  }
}
