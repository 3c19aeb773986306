import type { Delta, Snapshot } from './frames.js';
import type { Asked } from './query.js';
import { Subscribable } from './subscribable.js';
import { type Away, type TableUpdate, WindowCopy, marked } from './update.js';

/** Who is shown a window. */
export interface Watcher {
  show(update: TableUpdate): void;
  mark(away: Away): void;
  unsubscribe(): void;
}

/** One subscription on the wire, for all watchers that want the same. */
export class Entry extends Subscribable<Watcher> {
  readonly asked: Asked;
  /** On the wire, as long as the server has been asked and has not refused. */
  id: number | null = null;
  /** It is of no use to ask again. */
  isRefused = false;
  readonly #onUnused: (entry: Entry) => void;
  #copy: WindowCopy;
  #update: TableUpdate | null = null;
  #away: Away | null = null;

  constructor(asked: Asked, onUnused: (entry: Entry) => void) {
    super();
    this.asked = asked;
    this.#onUnused = onUnused;
    this.#copy = new WindowCopy(asked.table, asked.order);
  }

  get hasRows(): boolean {
    return this.#update !== null;
  }

  /** Nothing is to be done for it: its rows are those of the server, or there will never be any. */
  get isSettled(): boolean {
    return this.isRefused || (this.hasRows && this.#away === null);
  }

  override add(watcher: Watcher): () => void {
    if (this.#update !== null) {
      watcher.show(this.#update);
    } else if (this.#away !== null) {
      watcher.mark(this.#away);
    }
    return super.add(watcher);
  }

  /** It is asked for anew, so its versions begin anew. */
  attach(id: number): void {
    this.id = id;
    this.#copy = new WindowCopy(this.asked.table, this.asked.order);
  }

  /** Shows the frame to all watchers; throws a Gap if one before it is missing. */
  take(frame: Snapshot | Delta): void {
    this.#update = this.#copy.take(frame);
    this.#away = null;
    for (const watcher of this.listeners) {
      watcher.show(this.#update);
    }
  }

  /** Lets the watchers keep what they have, as stale. */
  lose(away: Away): void {
    this.id = null;
    this.#away = away;
    if (this.#update !== null) {
      this.#update = marked(this.#update, away);
    }
    for (const watcher of this.listeners) {
      watcher.mark(away);
    }
  }

  protected override onUnused(): void {
    this.#onUnused(this);
  }
}
