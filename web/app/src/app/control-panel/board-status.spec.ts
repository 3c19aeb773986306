import { boardStatus, buildProgress } from './board-status';

describe('boardStatus', () => {
  it('finds the sources of any board', () => {
    const names = ['ordersTopic', 'joinType', 'lastApplied', 'generation', 'phase', 'message'];
    const status = boardStatus({
      table: 'orchestrator_status',
      columns: names.map((name) => ({ name, type: 'string' })),
      keys: ['board'],
      rows: [['orders-b', 'left', null, 'g3', 'live', '']],
      total: 1,
      offset: 0,
      generation: null,
      staleSince: null,
      problem: null,
    });
    expect(status?.sources).toEqual([{ source: 'orders', field: 'ordersTopic', topic: 'orders-b' }]);
    expect(status?.generation).toBe('g3');
  });
});

describe('buildProgress', () => {
  it('reads how far a build is', () => {
    expect(buildProgress('building g2: 45 % of 1,000 records')).toEqual({ generation: 'g2', percent: 45 });
    expect(buildProgress('g2 is live')).toBeNull();
  });
});
