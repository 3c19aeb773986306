import { expect, it } from 'vitest';
import type { Delta } from '../src/frames.js';
import { Gap, WindowCopy } from '../src/update.js';
import { snapshot } from './fake.js';

function delta(version: number, rows: Delta['rows'], more: Partial<Delta> = {}): Delta {
  return { ev: 'delta', id: 1, version, total: 3, rows, drop: 0, insert: 0, ...more };
}

it('deltas change, add and drop rows, and those that do not change stay the same', () => {
  const copy = new WindowCopy('t');
  const first = copy.take(snapshot(1, ['a', 'b', 'c']));
  const changed = copy.take(
    delta(
      2,
      [
        [1, 'x', ['X']],
        [3, 'd', ['D']],
        [4, 'e', ['E']],
      ],
      { total: 5 },
    ),
  );
  expect(changed).toMatchObject({
    keys: ['a', 'x', 'c', 'd', 'e'],
    total: 5,
    rows: [['a'], ['X'], ['c'], ['D'], ['E']],
  });
  expect(changed.rows[0]).toBe(first.rows[0]);
  expect(changed.rows[2]).toBe(first.rows[2]);
  expect(changed.columns).toBe(first.columns);
  expect(first.rows).toEqual([['a'], ['b'], ['c']]);
  const dropped = copy.take(delta(3, [[0, 'z', ['Z']]], { total: 1, drop: 4 }));
  expect(dropped).toMatchObject({ keys: ['z'], rows: [['Z']], total: 1 });
});

it('rows that come in front move the others, which stay the same', () => {
  const copy = new WindowCopy('t');
  const first = copy.take(snapshot(1, ['a', 'b', 'c']));
  const moved = copy.take(
    delta(
      2,
      [
        [0, 'y', ['Y']],
        [1, 'z', ['Z']],
        [3, 'b', ['B']],
      ],
      { insert: 2, drop: 1 },
    ),
  );
  expect(moved).toMatchObject({ keys: ['y', 'z', 'a', 'b'], rows: [['Y'], ['Z'], ['a'], ['B']] });
  expect(moved.rows[2]).toBe(first.rows[0]);
});

it('what one listener does to its rows cannot be seen by another', () => {
  const copy = new WindowCopy('t');
  const updates = [copy.take(snapshot(1, ['a'])), copy.take(delta(2, [[0, 'a', ['A']]]))];
  for (const update of updates) {
    for (const part of [update, update.columns, update.keys, update.rows, ...update.rows]) {
      expect(Object.isFrozen(part)).toBe(true);
    }
  }
});

it('b24 a gap is found', () => {
  expect(() => new WindowCopy('t').take(delta(1, []))).toThrow(Gap);
  expect(() => new WindowCopy('t').take(snapshot(1, [], { version: 2 }))).toThrow(
    /^expected version 1 of t, found snapshot 2$/,
  );
  const copy = new WindowCopy('t');
  copy.take(snapshot(1, ['a']));
  expect(() => copy.take(delta(2, [[7, 'far', ['F']]]))).toThrow(/^expected a row of t up to index 1, found 7$/);
});

it('b25 other columns come in one step with their rows', () => {
  const copy = new WindowCopy('t');
  const before = copy.take(snapshot(1, ['ada']));
  const columns = [{ name: 'age', type: 'int64' } as const, { name: 'name', type: 'string' } as const];
  const after = copy.take(
    snapshot(1, ['k'], { version: 2, generation: 'g2', columns, rows: [['9007199254740993', 'ada']] }),
  );
  expect(before).toMatchObject({ columns: [{ name: 'name' }], rows: [['ada']], generation: 'g1' });
  expect(after).toMatchObject({ columns, rows: [['9007199254740993', 'ada']], generation: 'g2' });
});
