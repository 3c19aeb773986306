import type { TableUpdate } from 'table-hub';
import { type Place, lastPage, shownAt, windowOf } from './paging';

/** A table of rows 0, 1, 2, … as the server shows it. */
function served(total: number, { order, offset, size }: ReturnType<typeof windowOf>): TableUpdate {
  const all = Array.from({ length: total }, (_, number) => number);
  const rows = (order === 'newest' ? all.toReversed() : all).slice(offset, offset + size);
  return {
    table: 't',
    columns: [{ name: 'n', type: 'int64' }],
    keys: rows.map(String),
    rows: rows.map((number) => [number]),
    total,
    offset,
    order,
    generation: 'g1',
    staleSince: null,
    problem: null,
  };
}

function numbers(total: number, place: Place): unknown[] {
  return shownAt(served(total, windowOf(place)), place).rows.map(([number]) => number);
}

describe('pages', () => {
  it.each([
    [0, [9, 8, 7, 6]],
    [4, [5, 4, 3, 2]],
    [8, [1, 0]],
  ])('b43 from row %d on stay as they are while rows come', (offset, rows) => {
    const place: Place = { order: 'newest', offset, size: 4, heldAt: 10 };
    expect(numbers(10, { ...place, heldAt: null })).toEqual(rows);
    expect(numbers(10, place)).toEqual(rows);
    expect(numbers(17, place)).toEqual(rows);
    expect(shownAt(served(17, windowOf(place)), place).offset).toBe(offset);
  });

  it('b43 stay as they are until the server has heard that they are held', () => {
    const place: Place = { order: 'newest', offset: 0, size: 4, heldAt: 10 };
    const late = shownAt(served(12, { order: 'newest', offset: 0, size: 4 }), place);
    expect(late.rows.map(([number]) => number)).toEqual([9, 8]);
  });

  it('slide while nobody holds them, and are plain in order of arrival', () => {
    expect(numbers(12, { order: 'newest', offset: 0, size: 3, heldAt: null })).toEqual([11, 10, 9]);
    expect(numbers(12, { order: 'arrival', offset: 3, size: 3, heldAt: null })).toEqual([3, 4, 5]);
  });

  it('end with a page that has rows', () => {
    expect([lastPage(0, 300), lastPage(300, 300), lastPage(301, 300)]).toEqual([0, 0, 300]);
  });
});
