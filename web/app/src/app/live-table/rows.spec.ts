import type { TableUpdate } from 'table-hub';
import { Rows, type Step } from './rows';

function update(rows: Record<string, readonly (number | null)[]>): TableUpdate {
  return {
    table: 't',
    columns: [{ name: 'n', type: 'int64' }],
    keys: Object.keys(rows),
    rows: Object.values(rows),
    total: 9,
    offset: 0,
    order: 'newest',
    generation: 'g1',
    staleSince: null,
    problem: null,
  };
}

/** The rows after a step, by what the grid does with it. */
function applied(rows: readonly string[], step: Step): string[] {
  if (step.kind === 'none') return [...rows];
  if (step.kind === 'replace') return step.rows.map(({ key }) => key);
  const keys = (some: readonly { key: string }[]) => some.map(({ key }) => key);
  const gone = keys(step.remove);
  return [...keys(step.insert), ...rows.filter((key) => !gone.includes(key)), ...keys(step.add)];
}

describe('Rows', () => {
  const one = [1];
  const two = [2];

  it('patches what changed in its place and what came at either end', () => {
    const rows = new Rows();
    rows.take(update({ a: one, b: two }), 0);
    const step = rows.take(update({ x: [0], a: one, b: [3], c: [4] }), 7);
    expect(step).toMatchObject({
      kind: 'patch',
      insert: [{ key: 'x', cameAt: 7 }],
      update: [{ key: 'b', values: [3], cameAt: null }],
      add: [{ key: 'c', cameAt: null }],
      remove: [],
    });
  });

  it('b43 lets rows slide in and the last ones out', () => {
    const rows = new Rows();
    rows.take(update({ c: one, b: two, a: one }), 0);
    const step = rows.take(update({ e: one, d: two, c: one }), 1);
    expect(step).toMatchObject({ kind: 'patch', insert: [{ key: 'e' }, { key: 'd' }], update: [], add: [] });
    expect(applied(['c', 'b', 'a'], step)).toEqual(['e', 'd', 'c']);
  });

  it('does nothing when nothing changed or the same was sent again', () => {
    const rows = new Rows();
    rows.take(update({ a: one }), 0);
    expect(rows.take(update({ a: [1] }), 1)).toEqual({ kind: 'none' });
  });

  it('replaces rows that moved', () => {
    const rows = new Rows();
    rows.take(update({ a: one, b: two }), 0);
    const step = rows.take(update({ b: two, a: one }), 1);
    expect(step.kind).toBe('replace');
    expect(applied(['a', 'b'], step)).toEqual(['b', 'a']);
  });

  it('knows which way a number went', () => {
    const rows = new Rows();
    rows.take(update({ a: one, b: two, c: [null] }), 0);
    const step = rows.take(update({ a: [5], b: [-5], c: one }), 9);
    const found = step.kind === 'patch' ? step.update.map(({ trends }) => trends.get(0)) : [];
    expect(found).toEqual([{ isUp: true, at: 9 }, { isUp: false, at: 9 }, undefined]);
  });
});
