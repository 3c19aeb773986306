import type { Value } from 'table-hub';
import { type BoardStatus, boardStatus, controlMessage } from './board-status';

const NAMES = ['ordersTopic', 'trucksTopic', 'joinType', 'lastApplied', 'generation', 'phase', 'message', 'building'];

function status(building: readonly Value[] = [null, null, null]): BoardStatus {
  const found = boardStatus({
    table: 'orchestrator_status',
    columns: [...NAMES, 'built', 'toBuild'].map((name) => ({ name, type: 'string' })),
    keys: ['board'],
    rows: [['orders-b', 'trucks-b', 'left', null, 'g3', 'live', '', ...building]],
    total: 1,
    offset: 0,
    order: 'arrival',
    generation: null,
    staleSince: null,
    problem: null,
  });
  if (found === null) throw new Error('no status');
  return found;
}

describe('boardStatus', () => {
  it('finds the sources of any board', () => {
    expect(status().sources).toEqual([
      { source: 'orders', field: 'ordersTopic', topic: 'orders-b' },
      { source: 'trucks', field: 'trucksTopic', topic: 'trucks-b' },
    ]);
    expect(status().generation).toBe('g3');
  });

  it('tells how far a build is', () => {
    expect(status().build).toBeNull();
    expect(status(['g4', 455, 1_000]).build).toEqual({ generation: 'g4', percent: 45 });
    expect(status(['g4', 0, 0]).build).toBeNull();
  });
});

describe('controlMessage', () => {
  const live = { ordersTopic: 'orders-b', trucksTopic: 'trucks-b', joinType: 'left' };

  it('names what is different', () => {
    expect(controlMessage(status(), { ...live, trucksTopic: 'trucks-c' })).toEqual({ topics: { trucks: 'trucks-c' } });
    expect(controlMessage(status(), { ...live, joinType: 'asof' })).toEqual({ topics: {}, joinType: 'asof' });
  });

  it('names all where nothing is: that ends what is being built', () => {
    const all = { topics: { orders: 'orders-b', trucks: 'trucks-b' }, joinType: 'left' };
    expect(controlMessage(status(), live)).toEqual(all);
  });
});
