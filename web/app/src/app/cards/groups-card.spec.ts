import type { Column } from 'table-hub';
import { barsOf } from './groups-card';

const COLUMNS: Column[] = [
  { name: 'city', type: 'string' },
  { name: 'total', type: 'decimal' },
  { name: 'avg_price', type: 'float64' },
  { name: 'ts', type: 'timestamp' },
];
const ROWS = [
  ['Bern', '75.00', 1.5, '2026-01-31T09:00:00.000000Z'],
  [null, '25.00', 2.5, '2026-01-31T09:00:00.000000Z'],
];

describe('barsOf', () => {
  it('names the groups, with their share of a sum', () => {
    expect(barsOf({ columns: COLUMNS, rows: ROWS, total: 2 }, 'total')).toEqual([
      { name: 'Bern', value: 75, text: '75', share: '75%' },
      { name: '(empty)', value: 25, text: '25', share: '25%' },
    ]);
  });

  it('has no shares of means, nor of a part of the rows', () => {
    expect(barsOf({ columns: COLUMNS, rows: ROWS, total: 2 }, 'avg_price').map(({ share }) => share)).toEqual(['', '']);
    expect(barsOf({ columns: COLUMNS, rows: ROWS, total: 3 }, 'total').map(({ share }) => share)).toEqual(['', '']);
  });
});
