import type { TableInfo } from 'table-hub';
import {
  type Card,
  added,
  card,
  cardTitle,
  checkedCards,
  decodeCards,
  defaultCards,
  encodeCards,
  movedCard,
  resized,
} from './layout';

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

function shown(cards: readonly Card[]): string[] {
  return cards.map(({ kind, table, column, measure, width, height }) =>
    [kind, table, column, measure === 'rows' ? '' : measure, `${width}x${height}`].filter(Boolean).join(' '),
  );
}

describe('a board of cards', () => {
  it('is made from the tables: a number and a grid for each, a chart where there is a time and a number', () => {
    expect(shown(defaultCards(TABLES))).toEqual([
      'number users_ui 4x1',
      'number final_ui 4x1',
      'number timeless 4x1',
      'line final_ui balance 6x2',
      'line users_ui age 6x2',
      'table users_ui 6x4',
      'table final_ui 6x4',
      'table timeless 12x4',
    ]);
  });

  it('begins with the aggregates, has groups as bars, and leaves out what liveboard fills itself', () => {
    const measured = (name: string): TableInfo['columns'] => [
      { name: 'city', type: 'string' },
      { name: 'orders', type: 'int64' },
      { name, type: 'float64' },
      { name: 'ts', type: 'timestamp' },
    ];
    const tables: TableInfo[] = [
      ...TABLES.slice(0, 1).map((users): TableInfo => ({ ...users, kind: 'source' })),
      { name: 'by_city', rows: 3, kind: 'aggregate', columns: measured('total') },
      {
        name: 'prices',
        rows: 3,
        kind: 'aggregate',
        columns: [{ name: 'window_start', type: 'timestamp' }, ...measured('avg_price')],
      },
      { name: 'exposure', rows: 5, kind: 'view', columns: measured('total') },
      { name: 'alerts_ui', rows: 0, kind: 'alert', columns: measured('value') },
      { name: 'rejects_ui', rows: 0, kind: 'rejects', columns: measured('value') },
    ];
    expect(shown(defaultCards(tables))).toEqual([
      'number by_city total sum 4x1',
      'number prices orders sum 4x1',
      'number users_ui 4x1',
      'line prices avg_price 6x2',
      'groups by_city total 3x2',
      'groups exposure total 3x2',
      'table prices 6x4',
      'table users_ui 6x4',
      'line prices orders 6x3',
      'line users_ui age 6x3',
    ]);
  });

  it('has more than one number also where there is one table', () => {
    expect(shown(defaultCards(TABLES.slice(1, 2)))).toEqual([
      'number final_ui 4x1',
      'number final_ui balance mean 4x1',
      'number final_ui age mean 4x1',
      'line final_ui balance 6x2',
      'line final_ui age 6x2',
      'table final_ui 12x4',
    ]);
  });

  it('says what its groups go by, where that is known', () => {
    const groups = card('groups', 'users_ui', { column: 'age' });
    expect(cardTitle(groups)).toBe('age by group, users_ui');
    expect(cardTitle(groups, TABLES)).toBe('age by userId, users_ui');
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
