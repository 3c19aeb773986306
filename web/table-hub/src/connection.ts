import { Backoff } from './backoff.js';
import { Unauthorized, Unreachable } from './errors.js';
import {
  type ClientFrame,
  PROTOCOL,
  type Ready,
  type ServerFrame,
  UNAUTHORIZED,
  UNSUPPORTED,
  decodeServer,
} from './frames.js';

export const CONNECT_MS = 10_000;
export const SILENCE_MS = 30_000;

/** `waiting` is before the next try; `idle` is without one: nobody has called connect, or what it tried was in vain. */
export type HubState = 'idle' | 'connecting' | 'ready' | 'waiting' | 'unauthorized' | 'closed';

const MOVES: Record<HubState, readonly HubState[]> = {
  idle: ['connecting', 'closed'],
  connecting: ['ready', 'waiting', 'idle', 'unauthorized', 'closed'],
  ready: ['waiting', 'idle', 'unauthorized', 'closed'],
  waiting: ['connecting', 'closed'],
  unauthorized: ['closed'],
  closed: [],
};

/** Who has the connection. */
export interface Holder {
  moved(): void;
  ready(frame: Ready): void;
  heard(frame: ServerFrame): void;
  lost(problem: string): void;
}

/**
 * One WebSocket at a time, which is replaced when it is lost, for as long as the server lets it in. Listeners of the
 * socket before are taken off, so nothing that still comes from it is heard.
 */
export class Connection {
  readonly #url: string;
  readonly #psk: string;
  readonly #WebSocket: typeof WebSocket;
  readonly #holder: Holder;
  readonly #backoff: Backoff;
  #state: HubState = 'idle';
  #wasReady = false;
  #socket: WebSocket | null = null;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #opening: Opening | null = null;

  constructor(url: string, psk: string, socketClass: typeof WebSocket, random: () => number, holder: Holder) {
    this.#url = url;
    this.#psk = psk;
    this.#WebSocket = socketClass;
    this.#holder = holder;
    this.#backoff = new Backoff(random);
  }

  get state(): HubState {
    return this.#state;
  }

  /** Resolves when it is ready; rejects if the first try fails. From then on it heals itself. */
  open(): Promise<void> {
    switch (this.#state) {
      case 'ready':
        return Promise.resolve();
      case 'unauthorized':
        return Promise.reject(new Unauthorized());
      case 'closed':
        return Promise.reject(closed());
      default:
        this.#opening ??= new Opening();
    }
    const { promise } = this.#opening;
    if (this.#state === 'idle') {
      this.#wasReady = false;
      this.#dial();
    }
    return promise;
  }

  send(frame: ClientFrame): void {
    this.#socket?.send(JSON.stringify(frame));
  }

  /** Ends it; harmless when it has ended. */
  close(): void {
    if (this.#state !== 'closed') {
      this.#drop();
      this.#move('closed');
      this.#settle(closed());
    }
  }

  #move(state: HubState): void {
    if (!MOVES[this.#state].includes(state)) {
      throw new Error(`expected one of ${MOVES[this.#state].join(', ')} after ${this.#state}, found ${state}`);
    }
    this.#state = state;
    this.#holder.moved();
  }

  #dial(): void {
    this.#move('connecting');
    try {
      const socket = new this.#WebSocket(this.#url);
      this.#socket = socket;
      socket.onopen = () => {
        this.send({ op: 'auth', psk: this.#psk, protocol: PROTOCOL });
      };
      socket.onmessage = ({ data }: MessageEvent<unknown>) => {
        this.#hear(data);
      };
      socket.onclose = (event) => {
        this.#fail(this.#reason(event));
      };
    } catch (error) {
      this.#fail(new Unreachable(`${this.#url}: expected a liveboard server, found none (${String(error)})`));
      return;
    }
    this.#expectFrame(CONNECT_MS);
  }

  #expectFrame(withinMs: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#fail(new Unreachable(`${this.#url}: expected a frame within ${withinMs / 1000} s, found silence`));
    }, withinMs);
  }

  #hear(data: unknown): void {
    this.#expectFrame(SILENCE_MS);
    const frame = decodeServer(data);
    if (this.#state === 'connecting') {
      this.#greet(frame);
      return;
    }
    this.#backoff.reset();
    if (frame === null) {
      // If it was of a subscription, the versions show that it is missing.
      console.warn(`table-hub: ${this.#url}: expected a frame of protocol ${PROTOCOL}, found something else`);
    } else {
      this.#holder.heard(frame);
    }
  }

  #greet(frame: ServerFrame | null): void {
    if (frame?.ev === 'ready') {
      this.#wasReady = true;
      this.#move('ready');
      this.#holder.ready(frame);
      this.#settle(null);
    } else if (frame?.ev !== 'error') {
      this.#fail(new Unreachable(`${this.#url}: expected the frame ready, found another`));
    } else if (frame.code === 'unauthorized') {
      this.#fail(new Unauthorized());
    } else {
      const message = `${this.#url}: ${frame.message}`;
      this.#fail(frame.code === 'overloaded' ? new Unreachable(message) : new Error(message));
    }
  }

  /** The connection is lost; after anything but Unreachable it is useless to try again. */
  #fail(failure: Error): void {
    this.#drop();
    if (failure instanceof Unauthorized) {
      this.#move('unauthorized');
    } else if (this.#wasReady && failure instanceof Unreachable) {
      this.#move('waiting');
      this.#timer = setTimeout(() => {
        this.#dial();
      }, this.#backoff.next());
    } else {
      this.#move('idle');
    }
    this.#holder.lost(failure.message);
    if (this.#state !== 'waiting') {
      this.#settle(failure);
    }
  }

  #reason({ code, reason }: CloseEvent): Error {
    if (code === UNAUTHORIZED) {
      return new Unauthorized();
    }
    const found = `(${code} ${reason}`.trimEnd() + ')';
    if (code === UNSUPPORTED) {
      return new Error(`${this.#url}: expected a server of protocol ${PROTOCOL}, found another ${found}`);
    }
    return new Unreachable(
      this.#state === 'ready'
        ? `${this.#url}: expected an open connection, found it closed ${found}`
        : `${this.#url}: expected a liveboard server, found none ${found}`,
    );
  }

  #drop(): void {
    clearTimeout(this.#timer);
    if (this.#socket !== null) {
      this.#socket.onopen = this.#socket.onmessage = this.#socket.onclose = null;
      this.#socket.close();
      this.#socket = null;
    }
  }

  #settle(failure: Error | null): void {
    this.#opening?.settle(failure);
    this.#opening = null;
  }
}

/** What the callers of `open` wait for. */
class Opening {
  readonly promise: Promise<void>;
  settle!: (failure: Error | null) => void;

  constructor() {
    this.promise = new Promise((resolve, reject) => {
      this.settle = (failure) => {
        if (failure === null) {
          resolve();
        } else {
          reject(failure);
        }
      };
    });
  }
}

function closed(): Error {
  return new Error('expected an open hub, found a closed one');
}
