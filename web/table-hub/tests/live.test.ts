/** The client against the real server: the test writes what the pipeline would, and looks through the client. */

import { afterAll, afterEach, beforeAll, beforeEach, expect, it, vi } from 'vitest';
import type { Row } from '../src/frames.js';
import {
  type HubState,
  type Subscription,
  TableHub,
  type TableUpdate,
  Unauthorized,
  type WindowQuery,
} from '../src/index.js';
import { containing } from './fake.js';
import { type Rows, Server } from './server.js';

const ignore = () => undefined;

const warn = vi.spyOn(console, 'warn');

let server: Server;
let hub: TableHub;
let generation: string;

beforeAll(async () => {
  server = await Server.start();
});

afterAll(async () => {
  await server.end();
});

beforeEach(async () => {
  generation = await server.build();
  await server.write(generation, users(range(10)));
  await server.switch(generation);
  await server.bound(generation);
  hub = new TableHub({ url: server.url, psk: server.key });
  await hub.connect();
});

afterEach(async () => {
  expect(warn).not.toHaveBeenCalled();
  hub.close();
  await server.subscribed(0);
});

function range(count: number): number[] {
  return Array.from({ length: count }, (_, place) => place);
}

function user(number: number, age = number): Row {
  return [`u${number}`, age, `2026-01-31T09:00:${String(number % 60).padStart(2, '0')}.000000Z`];
}

function users(numbers: number[], age?: number): Rows {
  return Object.fromEntries(numbers.map((number) => [`0-${number}`, user(number, age)]));
}

/** Waits until an expectation holds. */
function eventually(check: () => void | Promise<void>): Promise<void> {
  return vi.waitFor(check, { timeout: 15_000, interval: 5 });
}

/** What a client sees that was not there before. */
async function fresh(table: string, window: WindowQuery): Promise<TableUpdate> {
  const other = new TableHub({ url: server.url, psk: server.key });
  await other.connect();
  try {
    return await new Promise((resolve) => other.subscribe(table, resolve, window));
  } finally {
    other.close();
  }
}

it('b19 a wrong key is unauthorized', async () => {
  const stranger = new TableHub({ url: server.url, psk: 'a wrong key' });
  await expect(stranger.connect()).rejects.toThrow(Unauthorized);
  expect(stranger.state).toBe('unauthorized');
  stranger.close();
});

it('b19 no server is said', async () => {
  const lost = new TableHub({ url: 'http://127.0.0.1:1', psk: 'a key' });
  await expect(lost.connect()).rejects.toThrow('expected a liveboard server, found none');
});

it('the tables', () => {
  expect(hub.tables.map(({ name }) => name)).toEqual(expect.arrayContaining(['users_ui', 'orchestrator_status']));
  expect(hub.tables.find(({ name }) => name === 'users_ui')).toMatchObject({
    rows: 10,
    columns: [
      { name: 'userId', type: 'string' },
      { name: 'age', type: 'int64' },
      { name: 'ts', type: 'timestamp' },
    ],
  });
});

it('b21 b22 ten listeners are one subscription on the wire, and the last one out ends it', async () => {
  const subscriptions = range(10).map(() => hub.subscribe('users_ui', ignore));
  await eventually(() => {
    expect(subscriptions[9]?.update?.rows).toEqual(Object.values(users(range(10))));
  });
  await server.subscribed(1);
  const before = subscriptions[9]?.update?.rows;
  await server.write(generation, { ...users([3], 77), ...users([10]) });
  await eventually(() => {
    expect(subscriptions[9]?.update).toMatchObject({ total: 11, problem: null });
    expect(subscriptions[9]?.update?.rows[3]).toEqual(user(3, 77));
  });
  expect(subscriptions[9]?.update?.rows[2]).toBe(before?.[2]);
  expect(new Set(subscriptions.map(({ update }) => update)).size).toBe(1);
  for (const subscription of subscriptions) {
    subscription.unsubscribe();
  }
  await server.subscribed(0);
  expect((await fresh('users_ui', {})).total).toBe(11);
});

it('b22 a thousand comings and goings leave nothing behind', async () => {
  for (const round of range(250)) {
    for (const subscription of range(4).map(() => hub.subscribe('users_ui', ignore, { offset: round % 3, size: 5 }))) {
      subscription.unsubscribe();
    }
  }
  await server.subscribed(0);
  expect(hub.state).toBe('ready');
});

it('b23 windows, sorts, filters and searches', async () => {
  const subscription = hub.subscribe('users_ui', ignore, { sort: [['age', 'desc']], size: 3 });
  const sees = (ages: number[], total: number) =>
    eventually(() => {
      expect(subscription.update?.rows.map(([, age]) => age)).toEqual(ages);
      expect(subscription.update).toMatchObject({ total, problem: null });
    });
  await sees([9, 8, 7], 10);
  subscription.setWindow(3, 3);
  await sees([6, 5, 4], 10);
  subscription.setWindow(0, 3, { filter: [['age', 'between', [2, 5]]] });
  await sees([5, 4, 3], 4);
  subscription.setWindow(0, 300, { sort: [], filter: [], search: 'U7' });
  await sees([7], 1);
  subscription.setWindow(0, 300, { search: '', filter: [['none', '=', 1]] });
  await eventually(() => {
    expect(subscription.update).toMatchObject({ total: 1, problem: containing('expected a column') });
  });
  subscription.setWindow(8, 300, { filter: [] });
  await sees([8, 9], 10);
  await server.subscribed(1);
});

it('b24 a server that restarts: rows stay stale, then those of the new server follow', async () => {
  const states: HubState[] = [];
  hub.onState((state) => states.push(state));
  const plain = hub.subscribe('users_ui', ignore);
  const sorted = hub.subscribe('users_ui', ignore, { sort: [['age', 'desc']], size: 2 });
  await eventually(() => {
    expect([plain.update?.rows.length, sorted.update?.rows.length]).toEqual([10, 2]);
  });
  await server.stopServer();
  await eventually(() => {
    expect(plain.update?.staleSince).toBeInstanceOf(Date);
    expect(sorted.update).toMatchObject({ rows: [user(9), user(8)], problem: containing('expected') });
  });
  expect(plain.update?.problem).toMatch(/\(1012|found none/);
  await server.write(generation, users([10], 99));
  await server.startServer();
  await eventually(() => {
    expect(plain.update).toMatchObject({ total: 11, staleSince: null, problem: null });
    expect(sorted.update).toMatchObject({ rows: [user(10, 99), user(9)], staleSince: null, problem: null });
  });
  await server.subscribed(2);
  expect(states[0]).toBe('waiting');
  expect(states.at(-1)).toBe('ready');
});

it('b24 a generation that is removed leaves its viewers their rows', async () => {
  const pinned = hub.subscribe('users_ui', ignore, { generation });
  const live = hub.subscribe('users_ui', ignore);
  await eventually(() => {
    expect([pinned.update?.total, live.update?.total]).toEqual([10, 10]);
  });
  const next = await server.build();
  await server.write(next, users([50]));
  await server.switch(next);
  await eventually(() => {
    expect(live.update).toMatchObject({ generation: next, rows: [user(50)] });
  });
  await server.write(generation, users([10]));
  await eventually(() => {
    expect(pinned.update).toMatchObject({ generation, total: 11, problem: null });
  });
  await server.close(generation);
  await eventually(() => {
    expect(pinned.update).toMatchObject({ total: 11, problem: containing(generation) });
  });
  expect(live.update?.problem).toBeNull();
});

it('b25 another schema comes in one step with its rows', async () => {
  const seen: TableUpdate[] = [];
  hub.subscribe('users_ui', (update) => seen.push(update));
  const next = await server.build([
    ['age', 'bigint'],
    ['name', 'string'],
  ]);
  await server.write(next, { '0-1': ['9007199254740993', 'ada'] });
  await server.switch(next);
  await eventually(() => {
    expect(seen.at(-1)).toMatchObject({ generation: next, rows: [['9007199254740993', 'ada']] });
  });
  for (const { columns, rows, generation: of } of seen) {
    expect(columns.map(({ name }) => name)).toEqual(of === next ? ['age', 'name'] : ['userId', 'age', 'ts']);
    expect(rows.every((row) => row.length === columns.length)).toBe(true);
  }
});

it('b26 a swap in the midst of deltas: no error, no empty table, no mixture', async () => {
  const next = await server.build();
  await server.write(generation, users(range(50), 100));
  await server.write(next, users(range(40), 200));
  const seen: TableUpdate[] = [];
  const stream = hub.streamTableWithRebind('users_ui');
  stream.rows$.subscribe((update) => seen.push(update));
  await eventually(() => {
    expect(seen.at(-1)?.rows).toHaveLength(50);
  });
  seen.splice(0);
  // A slow machine may take all that follows in one step: one delta before it and one after it come alone.
  await server.write(generation, users([0], 150));
  await eventually(() => {
    expect(seen.at(-1)?.rows[0]).toEqual(user(0, 150));
  });
  const written: Promise<void>[] = [];
  for (const round of range(120)) {
    written.push(server.write(generation, users([round % 50], 100 + round)));
    written.push(server.write(next, users([round % 40], 200 + round)));
    if (round === 60) {
      written.push(server.switch(next));
    }
  }
  await Promise.all(written);
  await eventually(() => {
    expect(seen.at(-1)?.rows).toEqual(range(40).map((number) => user(number, 280 + number)));
  });
  await server.write(next, users([0], 400));
  await eventually(() => {
    expect(seen.at(-1)?.rows[0]).toEqual(user(0, 400));
  });
  const before = seen.filter((update) => update.generation === generation);
  const after = seen.filter((update) => update.generation === next);
  expect(before.length).toBeGreaterThan(0);
  expect(after.length).toBeGreaterThan(1);
  expect(seen).toEqual([...before, ...after]);
  expect(seen.every(({ problem, staleSince }) => problem === null && staleSince === null)).toBe(true);
  expect(before.every(({ rows }) => rows.length === 50)).toBe(true);
  expect(after.every(({ rows }) => rows.length === 40 && rows.every(([, age]) => Number(age) >= 200))).toBe(true);
  stream.dispose();
  await server.subscribed(0);
});

it('b24 random deltas lead to what a fresh snapshot shows', async () => {
  const random = randomFrom(20_260_131);
  const windows: WindowQuery[] = [
    { size: 10_000 },
    { offset: 7, size: 20 },
    { size: 15, sort: [['age', 'desc']] },
    { offset: 3, size: 10, sort: [['userId', 'asc']], filter: [['age', '>', 40]] },
    { size: 300, search: 'u1' },
  ];
  const subscriptions = windows.map((window) => hub.subscribe('users_ui', ignore, window));
  const model = new Map(Object.entries(users(range(10))));
  for (let round = 0; round < 10; round += 1) {
    for (let burst = 0; burst < 8; burst += 1) {
      const rows: Rows = {};
      for (const number of range(1 + random(12)).map(() => random(60))) {
        rows[`0-${number}`] = random(4) === 0 ? null : user(number, random(100));
      }
      await server.write(generation, rows);
      for (const [key, row] of Object.entries(rows)) {
        if (row === null) {
          model.delete(key);
        } else {
          model.set(key, row);
        }
      }
    }
    await eventually(() => {
      expect(Object.fromEntries(rowsByKey(subscriptions[0]?.update))).toEqual(Object.fromEntries(model));
    });
    for (const [place, window] of windows.entries()) {
      await eventually(async () => {
        expect(subscriptions[place]?.update).toEqual(await fresh('users_ui', window));
      });
    }
  }
  await server.subscribed(windows.length);
});

it('b22 b24 random comings, goings and moves during deltas, swaps and restarts end on the right rows', async () => {
  const random = randomFrom(7);
  const anyWindow = (): Required<Omit<WindowQuery, 'generation'>> => ({
    offset: random(2) * 5,
    size: 10 + random(2) * 10,
    order: random(2) ? 'newest' : 'arrival',
    sort: random(2) ? [['age', 'desc']] : [],
    filter: random(3) ? [] : [['age', '>', 50]],
    search: random(3) ? '' : 'u1',
  });
  const open = new Map<Subscription, WindowQuery>();
  for (let step = 1; step <= 400; step += 1) {
    const window = anyWindow();
    const some = [...open.keys()][random(open.size)];
    const choice = random(4);
    if (choice === 0 || some === undefined) {
      open.set(hub.subscribe('users_ui', ignore, window), window);
    } else if (choice === 1) {
      some.unsubscribe();
      open.delete(some);
    } else if (choice === 2) {
      some.setWindow(window.offset, window.size, window);
      open.set(some, window);
    } else {
      await server.write(generation, users([random(40)], 1 + random(100)));
    }
    if (step % 80 === 0) {
      generation = await server.build();
      await server.write(generation, users(range(40)));
      await server.switch(generation);
    }
    if (step % 150 === 0) {
      await server.stopServer();
      void server.startServer();
    }
  }
  await server.bound(generation);
  for (const [subscription, window] of open) {
    await eventually(async () => {
      expect(subscription.update).toEqual(await fresh('users_ui', window));
    });
  }
  await server.subscribed(new Set([...open.values()].map((window) => JSON.stringify(window))).size);
});

function rowsByKey(update: TableUpdate | null | undefined): [string, Row | undefined][] {
  return update?.keys.map((key, place) => [key, update.rows[place]]) ?? [];
}

/** Whole numbers below a bound, the same ones for the same seed. */
function randomFrom(seed: number): (bound: number) => number {
  let state = seed;
  return (bound) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * bound);
  };
}
