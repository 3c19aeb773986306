import type { TableUpdate } from 'table-hub';
import { RowRate } from './row-rate';

function update(total: number, generation = 'g1'): TableUpdate {
  const columns = [{ name: 'a', type: 'string' as const }];
  const rest = { order: 'newest' as const, offset: 0, generation, staleSince: null, problem: null };
  return { table: 't', columns, keys: [], rows: [], total, ...rest };
}

describe('the rate of rows', () => {
  it('counts what came in each second, and neither what was there nor what a swap brings', () => {
    const rate = new RowRate();
    expect(rate.tick()).toEqual([]);
    rate.take(update(100));
    expect(rate.tick()).toEqual([0]);
    rate.take(update(103));
    rate.take(update(105));
    expect(rate.tick()).toEqual([0, 5]);
    rate.take(update(900, 'g2'));
    rate.take(update(901, 'g2'));
    expect(rate.tick()).toEqual([0, 5, 1]);
  });
});
