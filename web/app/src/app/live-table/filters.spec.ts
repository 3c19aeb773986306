import type { Column } from 'table-hub';
import { conditions, filterModel } from './filters';

const COLUMNS: Column[] = [
  { name: 'name', type: 'string' },
  { name: 'age', type: 'int64' },
  { name: 'open', type: 'bool' },
  { name: 'born', type: 'date' },
  { name: 'ts', type: 'timestamp' },
];

describe('conditions', () => {
  it('names operators as the wire does', () => {
    const model = {
      name: { filterType: 'text', type: 'startsWith', filter: 'Ad' },
      age: { filterType: 'number', type: 'inRange', filter: 3, filterTo: 7 },
    };
    expect(conditions(model, COLUMNS)).toEqual([
      ['name', 'starts with', 'Ad'],
      ['age', 'between', [3, 7]],
    ]);
  });

  it('asks for empty values and for booleans without a text', () => {
    const model = { name: { type: 'blank' }, age: { type: 'notBlank' }, open: { type: 'false' } };
    expect(conditions(model, COLUMNS)).toEqual([
      ['name', 'is null'],
      ['age', 'is not null'],
      ['open', '=', false],
    ]);
  });

  it('turns local times into UTC and leaves days as they are', () => {
    const model = {
      born: { filterType: 'date', type: 'equals', dateFrom: '2026-01-31 00:00:00' },
      ts: { filterType: 'date', type: 'greaterThan', dateFrom: '2026-01-31 09:30:00' },
    };
    expect(conditions(model, COLUMNS)).toEqual([
      ['born', '=', '2026-01-31'],
      ['ts', '>', new Date(2026, 0, 31, 9, 30).toISOString()],
    ]);
  });

  it('leaves out what is not complete and columns that are gone', () => {
    const model = {
      gone: { filterType: 'text', type: 'contains', filter: 'x' },
      age: { filterType: 'number', type: 'inRange', filter: 3, filterTo: null },
    };
    expect(conditions(model, COLUMNS)).toEqual([]);
  });

  it('come back the same from an address', () => {
    const all: unknown[][] = [
      ['name', 'starts with', 'Ad'],
      ['age', 'between', [3, 7]],
      ['open', '=', false],
      ['born', '=', '2026-01-31'],
      ['ts', '>', new Date(2026, 0, 31, 9, 30).toISOString()],
    ];
    expect(conditions(filterModel(all, COLUMNS), COLUMNS)).toEqual(all);
    const empty = [['age', 'is not null']];
    expect(conditions(filterModel(empty, COLUMNS), COLUMNS)).toEqual(empty);
    expect(
      filterModel(
        [
          ['gone', '=', 1],
          ['age', 'in', [1]],
        ],
        COLUMNS,
      ),
    ).toEqual({});
  });
});
