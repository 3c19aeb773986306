import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { CONNECT_MS, SILENCE_MS } from '../src/connection.js';
import { type HubState, TableHub, Unauthorized, Unreachable } from '../src/index.js';
import { FakeServer, KEY, READY, URL_, connected, containing, expectNoKeyIn, settle, snapshot } from './fake.js';

const log = { error: vi.spyOn(console, 'error'), warn: vi.spyOn(console, 'warn') };

beforeEach(() => {
  vi.useFakeTimers();
  log.error.mockImplementation(() => undefined);
  log.warn.mockImplementation(() => undefined);
});

afterEach(() => {
  expectNoKeyIn(log.error, log.warn);
  vi.resetAllMocks();
  vi.useRealTimers();
});

it.each([{ ev: 'error', id: null, code: 'unauthorized', message: 'expected another' } as const, 4401])(
  'b19 a wrong key is unauthorized, is not retried and is in no error',
  async (answer) => {
    const server = new FakeServer(answer);
    const hub = server.hub();
    const failure: unknown = await hub.connect().catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(Unauthorized);
    expect(String(failure)).toMatch(/^Unauthorized: unauthorized/);
    expect(String((failure as Error).stack)).not.toContain(KEY);
    expect(hub.state).toBe('unauthorized');
    await expect(hub.connect()).rejects.toThrow(Unauthorized);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(server.sockets).toHaveLength(1);
  },
);

it('b19 a key that becomes wrong ends the tries and is said to all listeners', async () => {
  const { hub, server } = await connected();
  const one = hub.subscribe('t', () => undefined);
  server.socket.say(snapshot(1, ['ada']));
  server.socket.hangUp(4401);
  expect(hub.state).toBe('unauthorized');
  expect(one.update).toMatchObject({ rows: [['ada']], problem: containing('unauthorized') });
  expect(hub.subscribe('later', () => undefined).update?.problem).toMatch(/^unauthorized/);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(server.sockets).toHaveLength(1);
});

it('a server of another protocol is said and not retried', async () => {
  const message = 'expected protocol 2, found 1';
  const server = new FakeServer({ ev: 'error', id: null, code: 'bad_frame', message }, 4406);
  const hub = server.hub();
  await expect(hub.connect()).rejects.toThrow(message);
  await expect(hub.connect()).rejects.toThrow('expected a server of protocol 1, found another (4406)');
  await vi.advanceTimersByTimeAsync(60_000);
  expect([hub.state, server.sockets.length]).toEqual(['idle', 2]);
});

it('a server that changes its mind about the protocol is not tried again by itself', async () => {
  const { hub, server } = await connected();
  const subscription = hub.subscribe('t', () => undefined);
  server.socket.hangUp(4406, 'no more');
  await vi.advanceTimersByTimeAsync(60_000);
  expect([hub.state, server.sockets.length]).toEqual(['idle', 1]);
  expect(subscription.update?.problem).toContain('found another (4406 no more)');
});

it('a server that comes back with another protocol is not tried again by itself', async () => {
  const { hub, server } = await connected();
  const subscription = hub.subscribe('t', () => undefined);
  server.answers = [4406, 1006];
  server.socket.hangUp(1012);
  await vi.advanceTimersByTimeAsync(60_000);
  expect([hub.state, server.sockets.length]).toEqual(['idle', 2]);
  expect(subscription.update?.problem).toContain('expected a server of protocol 1');
  await expect(hub.connect()).rejects.toThrow('found none');
  await hub.connect();
  server.socket.say(snapshot(2, ['ada']));
  expect(subscription.update).toMatchObject({ rows: [['ada']], staleSince: null, problem: null });
});

it('no server at the first try is an error, and connect may be called again', async () => {
  const server = new FakeServer(1006, READY);
  const hub = server.hub();
  const subscription = hub.subscribe('t', () => undefined);
  const failure: unknown = await hub.connect().catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(Unreachable);
  expect(String(failure)).toBe('Unreachable: ws://127.0.0.1:8080/ws: expected a liveboard server, found none (1006)');
  expect(hub.state).toBe('idle');
  expect(subscription.update?.problem).toContain('found none');
  await hub.connect();
  expect(server.socket.subscribed).toHaveLength(1);
});

it('an address that the browser refuses is an error', async () => {
  const WebSocket = function () {
    throw new DOMException('insecure', 'SecurityError');
  } as unknown as typeof globalThis.WebSocket;
  const hub = new TableHub({ url: URL_, psk: KEY, WebSocket });
  await expect(hub.connect()).rejects.toThrow(/expected a liveboard server, found none \(SecurityError: insecure\)$/);
});

it('something else than a liveboard server is an error', async () => {
  await expect(new FakeServer({ ev: 'beat' }).hub().connect()).rejects.toThrow(
    'expected the frame ready, found another',
  );
});

it('a server that says nothing at all is an error', async () => {
  const server = new FakeServer('nothing');
  const opened = expect(server.hub().connect()).rejects.toThrow('expected a frame within 10 s, found silence');
  await vi.advanceTimersByTimeAsync(CONNECT_MS);
  await opened;
  expect(server.socket.isClosed).toBe(true);
});

it('connect called twice is one connection', async () => {
  const server = new FakeServer();
  const hub = server.hub();
  await Promise.all([hub.connect(), hub.connect()]);
  await hub.connect();
  expect(server.sockets).toHaveLength(1);
});

it('the tables and the role are those of the server', async () => {
  const tables = [{ name: 'users_ui', columns: [{ name: 'age', type: 'int64' as const }], rows: 2 }];
  const hub = new FakeServer({ ev: 'ready', tables, role: 'admin', server: '' }).hub();
  expect([hub.tables, hub.role]).toEqual([[], 'viewer']);
  await hub.connect();
  expect([hub.tables, hub.role]).toEqual([tables, 'admin']);
});

it('b24 one reattach at a time, the first after 150 ms, then backing off up to 10 s', async () => {
  const { hub, server } = await connected();
  server.answers = Array<number>(12).fill(1006);
  server.socket.hangUp(1006);
  const tries: number[] = [];
  let since = Date.now();
  while (hub.state !== 'ready') {
    const before = server.sockets.length;
    await vi.advanceTimersByTimeAsync(1);
    if (server.sockets.length > before) {
      tries.push(Date.now() - since);
      since = Date.now();
      expect(server.sockets.filter((socket) => !socket.isClosed).length).toBeLessThanOrEqual(1);
    }
  }
  expect(tries).toEqual([150, 300, 600, 1200, 2400, 4800, 9600, ...Array<number>(6).fill(10_000)]);
  server.socket.say({ ev: 'beat' });
  server.socket.hangUp(1006);
  await vi.advanceTimersByTimeAsync(150);
  expect(server.sockets).toHaveLength(15);
});

it('b24 a server that hangs up right after ready does not get a call every 150 ms', async () => {
  const { hub, server } = await connected();
  const calls: number[] = [];
  hub.onState((state) => {
    if (state === 'ready') {
      calls.push(Date.now());
      server.socket.hangUp(1006);
    }
  });
  server.socket.hangUp(1006);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(calls.length).toBeLessThan(15);
});

it('b24 silence of 30 s means reconnect, and a beat is no silence', async () => {
  const { hub, server } = await connected();
  await vi.advanceTimersByTimeAsync(SILENCE_MS - 1);
  server.socket.say({ ev: 'beat' });
  await vi.advanceTimersByTimeAsync(SILENCE_MS - 1);
  expect(hub.state).toBe('ready');
  const late = server.socket;
  const subscription = hub.subscribe('t', () => undefined);
  await vi.advanceTimersByTimeAsync(1);
  expect([hub.state, late.isClosed]).toEqual(['waiting', true]);
  expect(subscription.update?.problem).toContain('expected a frame within 30 s, found silence');
  await vi.advanceTimersByTimeAsync(150);
  expect(hub.state).toBe('ready');
  late.say(snapshot(2, ['late']));
  late.hangUp(1006);
  expect([hub.state, subscription.update?.rows]).toEqual(['ready', []]);
});

it('b24 a server that has too much to do is asked again', async () => {
  const { hub, server } = await connected();
  server.answers = [{ ev: 'error', id: null, code: 'overloaded', message: 'too many viewers' }];
  server.socket.hangUp(1013);
  await vi.advanceTimersByTimeAsync(150);
  expect([hub.state, hub.subscribe('t', () => undefined).update?.problem]).toEqual([
    'waiting',
    'ws://127.0.0.1:8080/ws: too many viewers',
  ]);
  await vi.advanceTimersByTimeAsync(300);
  expect(hub.state).toBe('ready');
});

it('connect during a wait resolves when it is ready again', async () => {
  const { hub, server } = await connected();
  server.answers = [1006, 1006];
  server.socket.hangUp(1012, 'come back');
  let isReady = false;
  void hub.connect().then(() => (isReady = true));
  await vi.advanceTimersByTimeAsync(150 + 300);
  expect([isReady, hub.state]).toEqual([false, 'waiting']);
  await vi.advanceTimersByTimeAsync(600);
  expect([isReady, hub.state]).toEqual([true, 'ready']);
});

it('the states are told in their order, and no more after the end of that', async () => {
  const server = new FakeServer();
  const hub = server.hub();
  const states: HubState[] = [];
  const others: HubState[] = [];
  hub.onState((state) => states.push(state));
  const end = hub.onState((state) => others.push(state));
  await hub.connect();
  await settle();
  server.socket.hangUp(1012);
  end();
  end();
  await vi.advanceTimersByTimeAsync(150);
  hub.close();
  await settle();
  expect(states).toEqual(['connecting', 'ready', 'waiting', 'connecting', 'ready', 'closed']);
  expect(others).toEqual(['connecting', 'ready']);
});

it('a closed hub stays closed', async () => {
  const { hub, server } = await connected();
  const seen: unknown[] = [];
  const subscription = hub.subscribe('t', (update) => seen.push(update));
  const { socket } = server;
  hub.subscribe('u', (update) => seen.push(update));
  socket.say(snapshot(1, ['ada']), { ev: 'error', id: 2, code: 'unknown_table', message: 'gone' });
  hub.close();
  hub.close();
  socket.say(snapshot(1, ['bob'], { version: 2 }));
  socket.hangUp(1006);
  expect(vi.getTimerCount()).toBe(0);
  await vi.advanceTimersByTimeAsync(60_000);
  expect([hub.state, socket.isClosed, server.sockets.length, seen]).toEqual(['closed', true, 1, []]);
  await expect(hub.connect()).rejects.toThrow('expected an open hub, found a closed one');
  expect(() => hub.subscribe('t', () => undefined)).toThrow('expected an open hub, found a closed one');
  expect(() => {
    subscription.setWindow(0, 1);
  }).toThrow('expected an open subscription, found a closed one');
});

it('closing while connecting and while waiting ends that too', async () => {
  const server = new FakeServer('nothing');
  const hub = server.hub();
  const opened = expect(hub.connect()).rejects.toThrow('expected an open hub, found a closed one');
  hub.close();
  await opened;
  const other = await connected();
  other.server.socket.hangUp(1006);
  other.hub.close();
  await vi.advanceTimersByTimeAsync(60_000);
  expect([vi.getTimerCount(), other.server.sockets.length]).toEqual([0, 1]);
});

it('a frame that cannot be read is left out', async () => {
  const { hub, server } = await connected();
  const subscription = hub.subscribe('t', () => undefined);
  server.socket.sayText('{');
  server.socket.sayText('{"ev":"confetti"}');
  server.socket.say({ ev: 'error', id: null, code: 'bad_frame', message: 'hm' }, { ev: 'beat' }, snapshot(1, ['ada']));
  expect(subscription.update?.rows).toEqual([['ada']]);
  expect(log.warn).toHaveBeenCalledTimes(3);
});

it('b24 an error of a subscription that has ended is left out without a word', async () => {
  const { hub, server } = await connected();
  hub.subscribe('t', () => undefined).unsubscribe();
  server.socket.say({ ev: 'error', id: 1, code: 'unknown_table', message: 'late' });
  await vi.advanceTimersByTimeAsync(20_000);
  expect(server.socket.subscribed).toHaveLength(1);
  expect(log.warn).not.toHaveBeenCalled();
});
