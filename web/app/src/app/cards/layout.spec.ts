import type { TableInfo } from 'table-hub';
import { added, card, checkedCards, decodeCards, defaultCards, encodeCards, movedCard, resized } from './layout';

const TABLES: TableInfo[] = [
  {
    name: 'users_ui',
    rows: 3,
    columns: [
      { name: 'userId', type: 'string' },
      { name: 'age', type: 'int64' },
      { name: 'ts', type: 'timestamp' },
    ],
  },
  {
    name: 'final_ui',
    rows: 3,
    columns: [
      { name: 'age', type: 'int64' },
      { name: 'balance', type: 'float64' },
      { name: 'ts', type: 'timestamp' },
    ],
  },
  { name: 'timeless', rows: 3, columns: [{ name: 'count', type: 'int64' }] },
];

describe('a board of cards', () => {
  it('is made from the tables: a number and a grid for each, a chart where there is a time and a number', () => {
    expect(defaultCards(TABLES).map(({ kind, table, column }) => [kind, table, column].join(' ').trim())).toEqual([
      'number users_ui',
      'number final_ui',
      'number timeless',
      'table users_ui',
      'table final_ui',
      'table timeless',
      'line users_ui age',
      'line final_ui balance',
    ]);
  });

  it('begins with the aggregates, and with alerts before other tables', () => {
    const columns = (name: string, group = 'city'): TableInfo['columns'] => [
      { name: group, type: 'string' },
      { name, type: 'float64' },
      { name: 'ts', type: 'timestamp' },
    ];
    const tables: TableInfo[] = [
      ...TABLES.slice(0, 1).map((users): TableInfo => ({ ...users, kind: 'source' })),
      { name: 'revenue', rows: 3, kind: 'aggregate', columns: columns('total') },
      { name: 'prices', rows: 3, kind: 'aggregate', columns: columns('avg_price', 'window_start') },
      { name: 'alerts_ui', rows: 0, kind: 'alert', columns: columns('since').slice(0, 1) },
    ];
    expect(
      defaultCards(tables).map(({ kind, table, column, measure, height }) =>
        [kind, table, column, measure, height].join(' '),
      ),
    ).toEqual([
      'number revenue total sum 1',
      'number prices avg_price mean 1',
      'number users_ui  rows 1',
      'table alerts_ui  rows 4',
      'table revenue  rows 3',
      'table prices  rows 4',
      'table users_ui  rows 4',
      'line prices avg_price rows 3',
      'line users_ui age rows 3',
    ]);
  });

  it('goes through the address and back', () => {
    const cards = [
      card('table', 'users_ui', { view: '1eyJ' }),
      card('number', 'final_ui', { column: 'a,b;c %', measure: 'mean', width: 4 }),
      card('top', 'users_ui', { column: 'name', query: '{"filter":[["age",">",3]]}' }),
      ...defaultCards(TABLES),
    ];
    expect(decodeCards(encodeCards(cards))).toEqual(checkedCards(cards));
    expect(decodeCards(encodeCards([]))).toEqual([]);
    expect(encodeCards([card('line', 'users_ui', { column: 'age' })])).toBe('line,users_ui,6,3,age');
  });

  it('leaves out what is no card, and has each once', () => {
    expect(decodeCards('table,users_ui,6,4;table,users_ui,3,3;pie,users_ui,1,1;table,no-name,1,1;x;%,%')).toEqual([
      card('table', 'users_ui'),
    ]);
    expect(checkedCards('cards')).toEqual([]);
    expect(checkedCards([null, 1, {}])).toEqual([]);
  });

  it('is arranged and resized within its bounds', () => {
    const [one, two] = [card('table', 'a'), card('table', 'b')];
    expect(movedCard([one, two], 0, 9)).toEqual([two, one]);
    expect(movedCard([one, two], 1, -1)).toEqual([two, one]);
    expect(movedCard([one, two], 5, 0)).toEqual([one, two]);
    expect(added([one, two], { ...one, width: 3 })).toEqual([one, two]);
    expect(resized(one, 99, 0)).toEqual({ ...one, width: 12, height: 1 });
    expect(resized(one, 0, 99)).toEqual({ ...one, width: 2, height: 12 });
  });
});
