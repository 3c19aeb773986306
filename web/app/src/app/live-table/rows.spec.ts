import type { TableUpdate } from 'table-hub';
import { Rows } from './rows';

function update(rows: Record<string, readonly number[]>): TableUpdate {
  return {
    table: 't',
    columns: [{ name: 'n', type: 'int64' }],
    keys: Object.keys(rows),
    rows: Object.values(rows),
    total: 9,
    offset: 0,
    generation: 'g1',
    staleSince: null,
    problem: null,
  };
}

describe('Rows', () => {
  const one = [1];
  const two = [2];

  it('patches what changed in its place and what came at the end', () => {
    const rows = new Rows();
    rows.take(update({ a: one, b: two }));
    const changed = [3];
    expect(rows.take(update({ a: one, b: changed, c: [4] }))).toEqual({
      kind: 'patch',
      update: [{ key: 'b', values: changed }],
      add: [{ key: 'c', values: [4] }],
    });
  });

  it('does nothing when nothing changed', () => {
    const rows = new Rows();
    rows.take(update({ a: one }));
    expect(rows.take(update({ a: one }))).toEqual({ kind: 'none' });
  });

  it('replaces rows that moved, and keeps the objects of those that did not change', () => {
    const rows = new Rows();
    const first = rows.take(update({ a: one, b: two }));
    const second = rows.take(update({ b: two, a: one }));
    expect(second.kind).toBe('replace');
    if (first.kind === 'patch' && second.kind === 'replace') expect(second.rows[1]).toBe(first.add[0]);
  });
});
