import type { TableUpdate } from 'table-hub';
import { RowRate } from './row-rate';

function update(total: number, generation = 'g1'): TableUpdate {
  const columns = [{ name: 'a', type: 'string' as const }];
  const rest = { order: 'newest' as const, offset: 0, generation, staleSince: null, problem: null };
  return { table: 't', columns, keys: [], rows: [], total, ...rest };
}

describe('the rate of rows', () => {
  it('counts what came a second, and neither what was there nor what a swap brings', () => {
    const rate = new RowRate();
    expect(rate.tick(0)).toEqual([]);
    rate.take(update(100));
    expect(rate.tick(1_000)).toEqual([]);
    rate.take(update(103));
    rate.take(update(105));
    expect(rate.tick(2_000)).toEqual([5]);
    rate.take(update(900, 'g2'));
    rate.take(update(904, 'g2'));
    // A busy page is late.
    expect(rate.tick(4_000)).toEqual([5, 2]);
  });
});
