import { checkedKey, webSocketUrl } from './address.js';
import { Backoff } from './backoff.js';
import { Connection, type Holder, type HubState } from './connection.js';
import { Entry } from './entry.js';
import {
  type Code,
  DEFAULT_SIZE,
  type Delta,
  type ErrorFrame,
  type Role,
  type Snapshot,
  type TableInfo,
} from './frames.js';
import { Notifier } from './notify.js';
import { type Asked, type WindowQuery, ask, keyOf } from './query.js';
import { Subscribable } from './subscribable.js';
import { type Listener, type Subscription, TableSubscription } from './subscription.js';
import { type Away, Gap } from './update.js';

export interface HubOptions {
  /** Of a server, http(s):// or ws(s)://, or relative to the page: "" is the server that the page comes from. */
  url: string;
  psk: string;
  WebSocket?: typeof WebSocket;
  random?: () => number;
}

/** The rows of a table as a stream; after a swap those of the new generation follow. */
export interface TableStream {
  rows$: { subscribe(next: Listener): { unsubscribe(): void } };
  dispose(): void;
}

/** The same request may succeed the next time. */
const PASSING: readonly Code[] = ['unknown_table', 'too_many', 'overloaded'];

/**
 * Live windows of a server's tables over one WebSocket, shared by all listeners that want the same.
 *
 * It heals itself: when the connection or a table goes away, listeners keep their last rows, marked stale with the time
 * since, and get a snapshot when it is back. It reads; it cannot change or delete a table.
 */
export class TableHub {
  readonly #connection: Connection;
  readonly #notifier = new Notifier();
  readonly #stateListeners = new Subscribable<() => void>();
  readonly #entries = new Map<string, Entry>();
  readonly #attached = new Map<number, Entry>();
  readonly #tableBackoff: Backoff;
  #tables: readonly TableInfo[] = [];
  #role: Role = 'viewer';
  #away: Away | null = null;
  #lastId = 0;
  #reattaching: ReturnType<typeof setTimeout> | null = null;

  constructor({ url, psk, WebSocket: socketClass = globalThis.WebSocket, random = Math.random }: HubOptions) {
    const holder: Holder = {
      moved: () => {
        this.#tellState();
      },
      ready: ({ tables, role }) => {
        this.#tables = tables;
        this.#role = role;
        this.#away = null;
        this.#attachAll();
      },
      heard: (frame) => {
        if (frame.ev === 'snapshot' || frame.ev === 'delta') {
          this.#take(frame);
        } else if (frame.ev === 'error') {
          this.#refused(frame);
        }
      },
      lost: (problem) => {
        this.#lose(problem);
      },
    };
    this.#tableBackoff = new Backoff(random);
    this.#connection = new Connection(webSocketUrl(url), checkedKey(psk), socketClass, random, holder);
  }

  get state(): HubState {
    return this.#connection.state;
  }

  /** The tables that there were when the hub became ready. */
  get tables(): readonly TableInfo[] {
    return this.#tables;
  }

  /** What the key is for, as of when the hub became ready. */
  get role(): Role {
    return this.#role;
  }

  /** Tells every change of the state; the function that it gives ends that. */
  onState(listener: (state: HubState) => void): () => void {
    const tell = () => {
      listener(this.state);
    };
    const remove = this.#stateListeners.add(tell);
    return () => {
      this.#notifier.cancel(tell);
      remove();
    };
  }

  /** Resolves when the hub is ready; rejects with Unauthorized, or with an error that says why the first try failed. */
  connect(): Promise<void> {
    return this.#connection.open();
  }

  /** Shows a window of a table to the listener, from now on; what is there already at once. */
  subscribe(table: string, listener: Listener, window: WindowQuery = {}): Subscription {
    if (this.state === 'closed') {
      throw new Error('expected an open hub, found a closed one');
    }
    return new TableSubscription(ask({ ...window, table }), listener, this.#notifier, (asked) => this.#find(asked));
  }

  /** The first rows of a table; each subscriber gets the current ones at once. */
  streamTableWithRebind(table: string, maxRows = DEFAULT_SIZE): TableStream {
    const { size } = ask({ table, size: maxRows });
    const subscriptions = new Set<Subscription>();
    let isDisposed = false;
    return {
      rows$: {
        subscribe: (next) => {
          if (isDisposed) {
            throw new Error('expected an open stream, found a disposed one');
          }
          const subscription = this.subscribe(table, next, { size });
          subscriptions.add(subscription);
          return {
            unsubscribe: () => {
              subscriptions.delete(subscription);
              subscription.unsubscribe();
            },
          };
        },
      },
      dispose: () => {
        isDisposed = true;
        for (const subscription of subscriptions) {
          subscription.unsubscribe();
        }
      },
    };
  }

  /** Ends all subscriptions and the connection, for good; harmless when they have ended. */
  close(): void {
    this.#stopReattaching();
    this.#connection.close();
    for (const entry of this.#entries.values()) {
      for (const watcher of entry.listeners) {
        watcher.unsubscribe();
      }
    }
  }

  #tellState(): void {
    for (const tell of this.#stateListeners.listeners) {
      this.#notifier.schedule(tell);
    }
  }

  #find(asked: Asked): Entry {
    const key = keyOf(asked);
    let entry = this.#entries.get(key);
    if (entry === undefined) {
      entry = new Entry(asked, (unused) => {
        this.#entries.delete(key);
        this.#detach(unused);
      });
      this.#entries.set(key, entry);
      if (this.state === 'ready') {
        this.#attach(entry);
      } else if (this.#away !== null) {
        entry.lose(this.#away);
      }
    }
    return entry;
  }

  #attach(entry: Entry): void {
    // Ids are never used twice, so what still comes for an earlier attachment finds nobody.
    const id = ++this.#lastId;
    entry.attach(id);
    this.#attached.set(id, entry);
    this.#connection.send({ op: 'subscribe', id, ...entry.asked });
  }

  #detach(entry: Entry): void {
    if (entry.id !== null && this.#attached.delete(entry.id)) {
      this.#connection.send({ op: 'unsubscribe', id: entry.id });
    }
  }

  #attachAll(): void {
    for (const entry of this.#entries.values()) {
      if (entry.id === null && !entry.isRefused) {
        this.#attach(entry);
      }
    }
  }

  #take(frame: Snapshot | Delta): void {
    const entry = this.#attached.get(frame.id);
    try {
      entry?.take(frame);
    } catch (error) {
      if (!(error instanceof Gap) || entry === undefined) {
        throw error;
      }
      this.#detach(entry);
      entry.lose({ since: new Date(), problem: error.message });
      this.#attachLater();
      return;
    }
    if (frame.ev === 'snapshot' && [...this.#entries.values()].every((each) => each.isSettled)) {
      this.#tableBackoff.reset();
    }
  }

  #refused({ id, code, message }: ErrorFrame): void {
    if (id === null) {
      console.warn(`table-hub: ${message}`);
      return;
    }
    const entry = this.#attached.get(id);
    if (entry === undefined) {
      return;
    }
    this.#attached.delete(id);
    // It has shown rows, so what it asks for was possible: it is the table that has changed.
    entry.isRefused = !entry.hasRows && !PASSING.includes(code);
    entry.lose({ since: new Date(), problem: message });
    if (!entry.isRefused) {
      this.#attachLater();
    }
  }

  /** Asks again for what the server has refused or lost, all of it at once. */
  #attachLater(): void {
    this.#reattaching ??= setTimeout(() => {
      this.#reattaching = null;
      this.#attachAll();
    }, this.#tableBackoff.next());
  }

  #stopReattaching(): void {
    if (this.#reattaching !== null) {
      clearTimeout(this.#reattaching);
      this.#reattaching = null;
    }
  }

  #lose(problem: string): void {
    this.#stopReattaching();
    this.#attached.clear();
    this.#away = { since: this.#away?.since ?? new Date(), problem };
    for (const entry of this.#entries.values()) {
      if (!entry.isRefused) {
        entry.lose(this.#away);
      }
    }
  }
}
