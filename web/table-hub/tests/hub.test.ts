import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { Subscription, TableUpdate } from '../src/index.js';
import { FakeServer, KEY, connected, containing, settle, snapshot } from './fake.js';

const ignore = () => undefined;

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

function names(subscription: Subscription): unknown[] | undefined {
  return subscription.update?.rows.map(([name]) => name);
}

it.each(['', '1a', 'a-b', 'a b', 'a\n', 'ä', 'a;drop'])(
  'b20 names are checked before anything is sent: %j',
  async (name) => {
    const { hub, server } = await connected();
    expect(() => hub.subscribe(name, ignore)).toThrow('expected a table name');
    expect(() => hub.streamTableWithRebind(name)).toThrow('expected a table name');
    expect(server.socket.subscribed).toEqual([]);
  },
);

it('b21 one subscription on the wire for all listeners, and rows decoded once', async () => {
  const { hub, server } = await connected();
  const seen: TableUpdate[] = [];
  hub.subscribe('t', (update) => seen.push(update));
  hub.subscribe('t', (update) => seen.push(update));
  server.socket.say(snapshot(1, ['ada']));
  await settle();
  const late = hub.subscribe('t', (update) => seen.push(update));
  expect(late.update).toBe(seen[0]);
  await Promise.resolve();
  expect(server.socket.subscribed).toHaveLength(1);
  expect(seen).toHaveLength(3);
  expect(new Set(seen).size).toBe(1);
  expect(seen[0]).toEqual({
    table: 't',
    columns: [{ name: 'name', type: 'string' }],
    keys: ['ada'],
    rows: [['ada']],
    total: 1,
    offset: 0,
    order: 'arrival',
    generation: 'g1',
    staleSince: null,
    problem: null,
  });
});

it('b21 another window, sort, filter, search or generation is another subscription', async () => {
  const { hub, server } = await connected();
  hub.subscribe('t', ignore);
  hub.subscribe('t', ignore, { size: 10 });
  hub.subscribe('t', ignore, { sort: [['name', 'asc']] });
  hub.subscribe('t', ignore, { filter: [['vip', '=', true]] });
  hub.subscribe('t', ignore, { filter: [['vip', '=', 1]] });
  hub.subscribe('t', ignore, { search: 'a' });
  hub.subscribe('t', ignore, { generation: 'g1' });
  hub.subscribe('t', ignore, { offset: 0, size: 300, sort: [], filter: [], search: '', generation: null });
  expect(server.socket.subscribed).toHaveLength(7);
});

it('b21 what was asked does not change with the arrays of who asked', async () => {
  const { hub, server } = await connected();
  const filter: unknown[][] = [['age', '>', 1]];
  hub.subscribe('t', ignore, { filter });
  filter.push(['age', '<', 9]);
  server.socket.hangUp(1006);
  await vi.advanceTimersByTimeAsync(150);
  expect(server.socket.subscribed[0]?.filter).toEqual([['age', '>', 1]]);
});

it('b21 a listener that throws does not hurt the others', async () => {
  const error = vi.spyOn(console, 'error').mockImplementation(ignore);
  const { hub, server } = await connected();
  const seen: TableUpdate[] = [];
  const failure = new Error('mine alone');
  hub.onState(() => {
    throw failure;
  });
  hub.subscribe('t', () => {
    throw failure;
  });
  hub.subscribe('t', (update) => seen.push(update));
  server.socket.say(snapshot(1, ['ada']));
  await settle();
  server.socket.say(snapshot(1, ['bob'], { version: 2 }));
  await settle();
  expect(seen.map(({ keys }) => keys)).toEqual([['ada'], ['bob']]);
  expect([hub.state, error.mock.calls.length]).toEqual(['ready', 2]);
});

it('b21 each listener is told once of what comes together, the newest', async () => {
  const { hub, server } = await connected();
  const seen: TableUpdate[] = [];
  const subscription = hub.subscribe('t', (update) => seen.push(update));
  server.socket.say(
    snapshot(1, ['ada']),
    { ev: 'delta', id: 1, version: 2, total: 2, rows: [[1, 'bob', ['bob']]], drop: 0, insert: 0 },
    { ev: 'delta', id: 1, version: 3, total: 2, rows: [[0, 'eve', ['eve']]], drop: 0, insert: 0 },
  );
  expect(names(subscription)).toEqual(['eve', 'bob']);
  expect(seen).toEqual([]);
  await Promise.resolve();
  expect(seen).toEqual([subscription.update]);
});

it('b22 the last one out closes, exactly once, and a subscribe during closing works', async () => {
  const { hub, server } = await connected();
  const [one, two] = [hub.subscribe('t', ignore), hub.subscribe('t', ignore)];
  one.unsubscribe();
  one.unsubscribe();
  expect(server.socket.unsubscribed).toEqual([]);
  two.unsubscribe();
  two.unsubscribe();
  const again = hub.subscribe('t', ignore);
  expect(server.socket.unsubscribed).toEqual([1]);
  expect(server.socket.subscribed.map(({ id }) => id)).toEqual([1, 2]);
  server.socket.say(snapshot(1, ['late']), snapshot(2, ['now']));
  expect([again, one, two].map(names)).toEqual([['now'], undefined, undefined]);
  expect(() => {
    one.setWindow(0, 10);
  }).toThrow('expected an open subscription, found a closed one');
});

it('b22 who comes and goes while the server is away is not on the wire afterwards', async () => {
  const { hub, server } = await connected();
  const one = hub.subscribe('t', ignore);
  server.socket.hangUp(1006);
  one.unsubscribe();
  hub.subscribe('u', ignore).unsubscribe();
  await vi.advanceTimersByTimeAsync(150);
  expect(server.socket.sent.map(({ op }) => op)).toEqual(['auth']);
});

it('b22 a listener may end itself and others while it is called', async () => {
  const { hub, server } = await connected();
  const seen: TableUpdate[] = [];
  const all: Subscription[] = [];
  all.push(
    hub.subscribe('t', () => {
      all.forEach((each) => {
        each.unsubscribe();
      });
    }),
    hub.subscribe('t', (update) => seen.push(update)),
  );
  server.socket.say(snapshot(1, ['ada']));
  await settle();
  expect([server.socket.unsubscribed, seen]).toEqual([[1], []]);
});

it('b22 a listener may subscribe, move and close the hub while it is called', async () => {
  const { hub, server } = await connected();
  const seen: string[] = [];
  const subscription: Subscription = hub.subscribe('t', () => {
    seen.push('first');
    hub.subscribe('t', () => {
      seen.push('inner');
      hub.close();
    });
    subscription.setWindow(10, 10);
  });
  server.socket.say(snapshot(1, ['ada']));
  await settle();
  expect([seen, hub.state]).toEqual([['first', 'inner'], 'closed']);
  expect(server.socket.subscribed.map(({ offset }) => offset)).toEqual([0, 10]);
});

it('b23 the default window, and a move that leaves others where they are', async () => {
  const { hub, server } = await connected();
  const [stays, moves] = [hub.subscribe('t', ignore), hub.subscribe('t', ignore)];
  expect(server.socket.subscribed).toMatchObject([{ offset: 0, size: 300 }]);
  server.socket.say(snapshot(1, ['ada']));
  moves.setWindow(300, 100);
  expect(server.socket.subscribed[1]).toMatchObject({ offset: 300, size: 100 });
  expect([names(moves), server.socket.unsubscribed]).toEqual([['ada'], []]);
  server.socket.say(snapshot(2, ['bob'], { offset: 300 }));
  expect([names(moves), moves.update?.offset, names(stays)]).toEqual([['bob'], 300, ['ada']]);
  moves.setWindow(0, 300);
  expect([names(moves), server.socket.unsubscribed]).toEqual([['ada'], [2]]);
  moves.setWindow(0, 300);
  expect(server.socket.subscribed).toHaveLength(2);
  server.socket.say(snapshot(1, ['eve'], { version: 2 }));
  expect([names(moves), names(stays)]).toEqual([['eve'], ['eve']]);
});

it('b23 a move keeps what its query does not name', async () => {
  const { hub, server } = await connected();
  const subscription = hub.subscribe('t', ignore, { sort: [['a', 'asc']], search: 'x', generation: 'g1' });
  subscription.setWindow(5, 5);
  subscription.setWindow(5, 5, { filter: [['a', 'is null']], search: '' });
  subscription.setWindow(0, 5, { sort: [], filter: [], generation: null });
  const same = { op: 'subscribe', table: 't', order: 'arrival' };
  expect(server.socket.subscribed.slice(1)).toEqual([
    { ...same, id: 2, offset: 5, size: 5, sort: [['a', 'asc']], filter: null, search: 'x', generation: 'g1' },
    {
      ...same,
      id: 3,
      offset: 5,
      size: 5,
      sort: [['a', 'asc']],
      filter: [['a', 'is null']],
      search: null,
      generation: 'g1',
    },
    { ...same, id: 4, offset: 0, size: 5, sort: null, filter: null, search: null, generation: null },
  ]);
  expect(server.socket.unsubscribed).toEqual([1, 2, 3]);
});

it.each([
  [-1, 10],
  [0.5, 10],
  [0, 0],
  [0, 10_001],
  [Number.NaN, 10],
])('b23 a window that cannot be is an error before anything is sent: %d, %d', async (offset, size) => {
  const { hub, server } = await connected();
  const subscription = hub.subscribe('t', ignore);
  expect(() => {
    subscription.setWindow(offset, size);
  }).toThrow(/^window: expected/);
  expect(() => hub.subscribe('t', ignore, { offset, size })).toThrow(/^window: expected/);
  expect(server.socket.subscribed).toHaveLength(1);
});

it('b24 rows stay, stale since the loss, and a snapshot takes the mark away', async () => {
  const { hub, server } = await connected();
  const seen: TableUpdate[] = [];
  const subscription = hub.subscribe('t', (update) => seen.push(update));
  server.socket.say(snapshot(1, ['ada']));
  await settle();
  server.answers = [1006, 1006];
  const since = new Date();
  server.socket.hangUp(1012, 'come back');
  await settle();
  expect(seen.at(-1)).toMatchObject({
    rows: [['ada']],
    staleSince: since,
    problem: containing('(1012 come back)'),
  });
  expect(seen.at(-1)?.rows).toBe(seen[0]?.rows);
  await vi.advanceTimersByTimeAsync(150 + 300);
  expect(subscription.update).toMatchObject({ staleSince: since, problem: containing('found none') });
  await vi.advanceTimersByTimeAsync(600);
  expect(server.socket.subscribed).toMatchObject([{ id: 2, table: 't' }]);
  expect(subscription.update?.staleSince).toEqual(since);
  server.socket.say(snapshot(1, ['late']), snapshot(2, ['bob']));
  await settle();
  expect(seen.at(-1)).toMatchObject({ rows: [['bob']], staleSince: null, problem: null });
  expect(seen.some(({ keys }) => keys.includes('late'))).toBe(false);
});

it('b24 who subscribes while the server is away is told, and served later', async () => {
  const { hub, server } = await connected();
  server.socket.hangUp(1006);
  const seen: TableUpdate[] = [];
  const subscription = hub.subscribe('t', (update) => seen.push(update));
  await settle();
  expect(seen).toMatchObject([{ table: 't', rows: [], staleSince: new Date() }]);
  await vi.advanceTimersByTimeAsync(150);
  server.socket.say(snapshot(1, ['ada']));
  expect([names(subscription), subscription.update?.staleSince]).toEqual([['ada'], null]);
});

it('b24 who subscribes late is told since when the server has been away, each time anew', async () => {
  const { hub, server } = await connected();
  for (const table of ['first', 'second']) {
    server.answers = [1006];
    const since = new Date();
    server.socket.hangUp(1006);
    await vi.advanceTimersByTimeAsync(150);
    expect(hub.subscribe(table, ignore).update?.staleSince).toEqual(since);
    await vi.advanceTimersByTimeAsync(300);
    server.socket.say({ ev: 'beat' });
  }
});

it('b24 who subscribes before the hub is connected is served then', async () => {
  const server = new FakeServer();
  const hub = server.hub();
  const subscription = hub.subscribe('t', ignore);
  expect(subscription.update).toBeNull();
  await hub.connect();
  server.socket.say(snapshot(1, ['ada']));
  expect(names(subscription)).toEqual(['ada']);
});

it('b24 tables that are away are asked for again all in one wait', async () => {
  const { hub, server } = await connected();
  const [one, two] = [hub.subscribe('one', ignore), hub.subscribe('two', ignore)];
  const gone = { ev: 'error', code: 'unknown_table', message: 'gone' } as const;
  server.socket.say(snapshot(1, ['ada']), { ...gone, id: 1 }, { ...gone, id: 2 });
  expect(one.update).toMatchObject({ rows: [['ada']], staleSince: new Date(), problem: 'gone' });
  expect(two.update).toMatchObject({ rows: [], problem: 'gone' });
  const since = new Date();
  server.socket.say(snapshot(1, ['late'], { version: 2 }));
  await vi.advanceTimersByTimeAsync(149);
  expect(server.socket.subscribed).toHaveLength(2);
  await vi.advanceTimersByTimeAsync(1);
  expect(server.socket.subscribed).toHaveLength(4);
  server.socket.say(snapshot(4, ['bob']), { ...gone, id: 3 });
  expect(one.update).toMatchObject({ rows: [['ada']], staleSince: since });
  await vi.advanceTimersByTimeAsync(299);
  expect(server.socket.subscribed).toHaveLength(4);
  await vi.advanceTimersByTimeAsync(1);
  server.socket.say(snapshot(5, ['eve']));
  expect([names(one), names(two), hub.state]).toEqual([['eve'], ['bob'], 'ready']);
  expect(one.update?.staleSince).toBeNull();
  server.socket.say({ ...gone, id: 5 });
  await vi.advanceTimersByTimeAsync(150);
  expect(server.socket.subscribed).toHaveLength(6);
});

it('b24 a column that is gone after rows were shown is waited for', async () => {
  const { hub, server } = await connected();
  const subscription = hub.subscribe('t', ignore, { sort: [['name', 'asc']] });
  server.socket.say(snapshot(1, ['ada']), { ev: 'error', id: 1, code: 'bad_filter', message: 'no name' });
  expect(subscription.update).toMatchObject({ rows: [['ada']], problem: 'no name' });
  await vi.advanceTimersByTimeAsync(150);
  expect(server.socket.subscribed).toHaveLength(2);
});

it('a question that makes no sense is not asked again', async () => {
  const { hub, server } = await connected();
  const subscription = hub.subscribe('t', ignore, { filter: [['none', '=', 1]] });
  server.socket.say({ ev: 'error', id: 1, code: 'bad_filter', message: 'expected a column' });
  expect(subscription.update).toMatchObject({ rows: [], problem: 'expected a column', staleSince: new Date() });
  await vi.advanceTimersByTimeAsync(20_000);
  server.socket.hangUp(1006);
  expect(subscription.update?.problem).toBe('expected a column');
  await vi.advanceTimersByTimeAsync(150);
  expect(server.sockets.flatMap(({ subscribed }) => subscribed)).toHaveLength(1);
  subscription.setWindow(0, 300, { filter: [] });
  server.socket.say(snapshot(2, ['ada']));
  expect(subscription.update).toMatchObject({ rows: [['ada']], problem: null, staleSince: null });
});

it('b24 a gap in the versions means resubscribe', async () => {
  const { hub, server } = await connected();
  const subscription = hub.subscribe('t', ignore);
  server.socket.say(snapshot(1, ['ada']), snapshot(1, ['eve'], { version: 3 }));
  expect(server.socket.unsubscribed).toEqual([1]);
  expect(subscription.update).toMatchObject({ rows: [['ada']], staleSince: new Date() });
  await vi.advanceTimersByTimeAsync(150);
  expect(server.socket.subscribed.map(({ id }) => id)).toEqual([1, 2]);
  server.socket.say(snapshot(1, ['late'], { version: 4 }), snapshot(2, ['bob']));
  expect(subscription.update).toMatchObject({ rows: [['bob']], staleSince: null });
});

it('b24 a connection that is lost while a table is away asks for it once', async () => {
  const { hub, server } = await connected();
  hub.subscribe('t', ignore);
  server.socket.say({ ev: 'error', id: 1, code: 'unknown_table', message: 'gone' });
  server.socket.hangUp(1006);
  await vi.advanceTimersByTimeAsync(5_000);
  expect(server.sockets.map(({ subscribed }) => subscribed.length)).toEqual([1, 1]);
});

it('b26 the rows of the new generation follow on the same stream', async () => {
  const { hub, server } = await connected();
  const stream = hub.streamTableWithRebind('t', 50);
  const seen: TableUpdate[] = [];
  const others: TableUpdate[] = [];
  const first = stream.rows$.subscribe((update) => seen.push(update));
  stream.rows$.subscribe((update) => others.push(update));
  expect(server.socket.subscribed).toMatchObject([{ table: 't', offset: 0, size: 50, generation: null }]);
  server.socket.say(snapshot(1, ['ada']));
  await settle();
  server.socket.say({ ev: 'rebound', id: 1, generation: 'g2' }, snapshot(1, ['bob'], { version: 2, generation: 'g2' }));
  await settle();
  expect(seen.map(({ generation, keys }) => [generation, keys])).toEqual([
    ['g1', ['ada']],
    ['g2', ['bob']],
  ]);
  first.unsubscribe();
  first.unsubscribe();
  server.socket.say(snapshot(1, ['eve'], { version: 3 }));
  await settle();
  expect([seen.length, others.length]).toEqual([2, 3]);
  stream.dispose();
  stream.dispose();
  expect(server.socket.unsubscribed).toEqual([1]);
  expect(() => stream.rows$.subscribe(ignore)).toThrow('expected an open stream, found a disposed one');
});

it('b27 a hub sends nothing but auth, subscribe and unsubscribe', async () => {
  const { hub, server } = await connected();
  const subscription = hub.subscribe('t', ignore);
  subscription.setWindow(10, 10, { search: 'x' });
  subscription.unsubscribe();
  hub.close();
  expect(server.socket.sent.map(({ op }) => op)).toEqual([
    'auth',
    'subscribe',
    'subscribe',
    'unsubscribe',
    'unsubscribe',
  ]);
  expect(server.socket.sent[0]).toEqual({ op: 'auth', psk: KEY, protocol: 1 });
  expect(server.socket.url).not.toContain(KEY);
});
