import { expect, it } from 'vitest';
import examples from '../../../src/liveboard/contract/frames.json' with { type: 'json' };
import { decodeServer, isServerFrame } from '../src/frames.js';
import { WIRE_TYPES } from '../src/types.js';
import { isClientFrame } from './clientFrames.js';
import { FakeServer, KEY } from './fake.js';

it('the types of columns are those of the server', () => {
  const ours = Object.entries(WIRE_TYPES).map(([type, { align, isNumber }]) => ({ type, align, isNumber }));
  expect(ours).toEqual(examples.types);
});

it.each(examples.server)('the server says $ev', (frame) => {
  expect(isServerFrame(frame)).toBe(true);
  expect(decodeServer(JSON.stringify(frame))).toEqual(frame);
});

it.each(examples.client)('the client says $op', (frame) => {
  expect(isClientFrame(frame)).toBe(true);
  expect(isServerFrame(frame)).toBe(false);
});

it.each(examples.bad)('nobody says $text', ({ text }) => {
  expect(decodeServer(text)).toBeNull();
  expect(isClientFrame(parsed(text))).toBe(false);
});

it.each([
  { ev: 'confetti' },
  {
    ev: 'ready',
    tables: [{ name: 't', columns: [{ name: 'c', type: 'colour' }], rows: 0 }],
    role: 'admin',
    server: '',
  },
  { ...examples.server[0], role: 'king' },
  { ...examples.server[1], keys: [] },
  { ...examples.server[1], version: '1' },
  { ...examples.server[1], rows: [[{}], []] },
  { ...examples.server[3], rows: [[-1, 'k', []]] },
  { ...examples.server[3], drop: null },
  { ev: 'error', id: 7, code: 'bored', message: '' },
])('the server does not say %j', (frame) => {
  expect(isServerFrame(frame)).toBe(false);
});

it('frames that are no text are none', () => {
  expect(decodeServer(new ArrayBuffer(2))).toBeNull();
});

it('a hub says what the examples say', async () => {
  const server = new FakeServer();
  const hub = server.hub();
  await hub.connect();
  // It has tables; statements are for other clients.
  const asked = examples.client.filter((frame) => frame.op === 'subscribe' && !('sql' in frame));
  for (const { table, offset, size, order, sort, filter, search, generation } of asked as Asked[]) {
    const query = { ...(sort && { sort }), ...(filter && { filter }), ...(search && { search }) };
    hub.subscribe(table, () => undefined, { offset, size, order, ...query, generation }).unsubscribe();
  }
  expect(server.socket.sent).toEqual([
    { ...examples.client[0], psk: KEY },
    ...asked.flatMap((frame, place) => [
      { ...frame, id: place + 1 },
      { op: 'unsubscribe', id: place + 1 },
    ]),
  ]);
});

interface Asked {
  table: string;
  offset: number;
  size: number;
  order: 'arrival' | 'newest';
  sort: [string, 'asc' | 'desc'][] | null;
  filter: unknown[][] | null;
  search: string | null;
  generation: string | null;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
