import { type Mock, expect, vi } from 'vitest';
import type { ClientFrame, ServerFrame, Snapshot, Subscribe } from '../src/frames.js';
import { type HubOptions, TableHub } from '../src/index.js';
import { isClientFrame } from './clientFrames.js';

export const KEY = 'a key that nobody may see';
export const URL_ = 'http://127.0.0.1:8080';

/** A WebSocket whose server is the test. */
export class FakeSocket {
  onopen: (() => void) | null = null;
  onmessage: ((event: { data: unknown }) => void) | null = null;
  onclose: ((event: { code: number; reason: string }) => void) | null = null;
  readonly sent: ClientFrame[] = [];
  readonly url: string;
  isClosed = false;

  constructor(url: string) {
    this.url = url;
  }

  send(text: string): void {
    const frame: unknown = JSON.parse(text);
    if (!isClientFrame(frame)) {
      throw new Error(`the server would refuse ${text}`);
    }
    this.sent.push(frame);
  }

  close(): void {
    this.isClosed = true;
  }

  say(...frames: ServerFrame[]): void {
    for (const frame of frames) {
      this.sayText(JSON.stringify(frame));
    }
  }

  sayText(data: unknown): void {
    this.onmessage?.({ data });
  }

  hangUp(code: number, reason = ''): void {
    this.onclose?.({ code, reason });
  }

  get subscribed(): Subscribe[] {
    return this.sent.filter((frame) => frame.op === 'subscribe');
  }

  get unsubscribed(): number[] {
    return this.sent.filter((frame) => frame.op === 'unsubscribe').map(({ id }) => id);
  }
}

export const READY: ServerFrame = { ev: 'ready', tables: [], role: 'admin', server: 'a test' };

/** Answers each call with the next of `answers`, and with `ready` when there are none left; a number is a close code. */
export class FakeServer {
  answers: (ServerFrame | number | 'nothing')[];
  readonly sockets: FakeSocket[] = [];

  constructor(...answers: (ServerFrame | number | 'nothing')[]) {
    this.answers = answers;
  }

  hub(options: Partial<HubOptions> = {}): TableHub {
    const dial = (url: string) => this.#dial(url);
    const WebSocket = function (url: string) {
      return dial(url);
    } as unknown as typeof globalThis.WebSocket;
    return new TableHub({ url: URL_, psk: KEY, WebSocket, random: () => 1, ...options });
  }

  get socket(): FakeSocket {
    const socket = this.sockets.at(-1);
    if (socket === undefined) {
      throw new Error('nobody has called');
    }
    return socket;
  }

  #dial(url: string): FakeSocket {
    const socket = new FakeSocket(url);
    this.sockets.push(socket);
    const answer = this.answers.shift() ?? READY;
    queueMicrotask(() => {
      if (typeof answer === 'number') {
        socket.hangUp(answer);
      } else if (answer !== 'nothing') {
        socket.onopen?.();
        socket.say(answer);
      }
    });
    return socket;
  }
}

export async function connected(): Promise<{ hub: TableHub; server: FakeServer }> {
  const server = new FakeServer();
  const hub = server.hub();
  await hub.connect();
  return { hub, server };
}

/** Lets everything run that can without time passing. */
export async function settle(): Promise<void> {
  await vi.advanceTimersByTimeAsync(0);
}

export function snapshot(id: number, names: string[], more: Partial<Snapshot> = {}): Snapshot {
  return {
    ev: 'snapshot',
    id,
    version: 1,
    generation: 'g1',
    total: names.length,
    offset: 0,
    columns: [{ name: 'name', type: 'string' }],
    keys: names,
    rows: names.map((name) => [name]),
    ...more,
  };
}

/** Any text with this part. */
export function containing(part: string): unknown {
  return expect.stringContaining(part);
}

/** Nothing that was logged has the key in it. */
export function expectNoKeyIn(...logs: Mock[]): void {
  expect(JSON.stringify(logs.map((log) => log.mock.calls))).not.toContain(KEY);
}
