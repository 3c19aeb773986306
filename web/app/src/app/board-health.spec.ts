import { stateOf } from './board-health';
import type { BoardStatus } from './control-panel/board-status';

function status(changes: Partial<BoardStatus>): BoardStatus {
  return {
    sources: [],
    joinType: '',
    generation: 'g1',
    phase: 'live',
    message: '',
    lastApplied: '',
    build: null,
    ...changes,
  };
}

describe('stateOf', () => {
  it.each([
    [{}, 'good', 'live'],
    [{ phase: 'building' }, 'good', 'live'],
    [{ phase: 'building', generation: '' }, 'busy', 'starting'],
    [{ phase: 'building', generation: '', build: { generation: 'g1', percent: 45 } }, 'busy', 'building, 45 %'],
    [{ phase: 'starting', generation: '' }, 'busy', 'starting'],
    [{ phase: 'catching_up' }, 'busy', 'catching up'],
    [{ phase: 'away' }, 'bad', 'Kafka away'],
    [{ phase: 'restarting' }, 'bad', 'pipeline down'],
    [{ phase: 'stale' }, 'bad', 'pipeline silent'],
    [{ phase: 'failed' }, 'bad', 'failed'],
  ] as const)('%o is %s: %s', (changes, kind, text) => {
    expect(stateOf(status(changes))).toMatchObject({ kind, text });
  });
});
