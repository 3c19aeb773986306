import type { Value } from 'table-hub';
import examples from '../../../../../src/liveboard/contract/control.json' with { type: 'json' };
import { type BoardStatus, boardStatus, controlMessage } from './board-status';

const LIVE = { ordersTopic: 'orders-b', trucksTopic: 'trucks-b', joinType: 'left', generation: 'g3' };

function status(row: Readonly<Record<string, Value>>): BoardStatus {
  const found = boardStatus({
    table: 'orchestrator_status',
    columns: Object.keys(row).map((name) => ({ name, type: 'string' })),
    keys: ['board'],
    rows: [Object.values(row)],
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
    expect(status(LIVE).sources).toEqual([
      { source: 'orders', field: 'ordersTopic', topic: 'orders-b' },
      { source: 'trucks', field: 'trucksTopic', topic: 'trucks-b' },
    ]);
    expect(status(LIVE).generation).toBe('g3');
  });

  it('tells how far a build is', () => {
    expect(status(LIVE).build).toBeNull();
    expect(status({ ...LIVE, building: 'g4', built: 455, toBuild: 1_000 }).build).toEqual({
      generation: 'g4',
      percent: 45,
    });
    expect(status({ ...LIVE, building: 'g4', built: 0, toBuild: 0 }).build).toBeNull();
  });
});

describe('controlMessage', () => {
  const { live, cases } = examples;

  it.each(cases)('names what is different, or all to end what is being built: $changed', ({ changed, message }) => {
    expect(controlMessage(status(live), { ...live, ...changed })).toEqual(message);
  });
});
