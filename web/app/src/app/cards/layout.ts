import { type Column, type TableInfo, WIRE_TYPES } from 'table-hub';

export const CARD_KINDS = ['table', 'number', 'line', 'bars', 'distribution', 'top'] as const;
export type CardKind = (typeof CARD_KINDS)[number];
export const MEASURES = ['rows', 'sum', 'mean', 'least', 'greatest'] as const;
export type Measure = (typeof MEASURES)[number];

/** The columns of the grid that a card's width is counted in. */
export const WIDEST = 12;
export const HIGHEST = 12;
const NARROWEST = 2;
const MAX_CARDS = 60;
/** Not empty, since then the address has no cards of its own. */
const NO_CARDS = '-';

/** One card of a board. */
export interface Card {
  readonly kind: CardKind;
  readonly table: string;
  /** What a chart or a number is of; empty for tables, and for the number of rows. */
  readonly column: string;
  /** Of numbers. */
  readonly measure: Measure;
  readonly width: number;
  readonly height: number;
  /** Which rows, as JSON; empty for all of them. */
  readonly query: string;
  /** Of tables: how it is shown when the board is opened, as the address has it. */
  readonly view: string;
}

const SIZES: Record<CardKind, { width: number; height: number }> = {
  table: { width: 6, height: 4 },
  number: { width: 3, height: 1 },
  line: { width: 6, height: 3 },
  bars: { width: 6, height: 3 },
  distribution: { width: 6, height: 3 },
  top: { width: 3, height: 3 },
};
const MEASURE_NAMES: readonly (readonly [RegExp, Measure])[] = [
  [/^(avg|mean|average)|(avg|mean|average)$/i, 'mean'],
  [/^(min|least)|(min|least)$/i, 'least'],
  [/^(max|greatest)|(max|greatest)$/i, 'greatest'],
];
/** Where an aggregate has it, its groups follow each other in time. */
const WINDOW_COLUMN = 'window_start';
const GROUPS_HEIGHT = 3;
const MOST_CHARTS = 4;
const MOST_NUMBERS = 4;

/** A card of its kind's usual size. */
export function card(kind: CardKind, table: string, more: Partial<Card> = {}): Card {
  return { kind, table, column: '', measure: 'rows', query: '', view: '', ...SIZES[kind], ...more };
}

/** The same for cards that show the same. */
export function cardId({ kind, table, column, measure, query }: Card): string {
  return [kind, table, column, kind === 'number' ? measure : '', query].join(' ');
}

/** What a card is called. */
export function cardTitle({ kind, table, column, measure }: Card): string {
  switch (kind) {
    case 'table':
      return table;
    case 'number':
      return measure === 'rows' ? `Rows of ${table}` : `${capital(measure)} of ${column}, ${table}`;
    case 'line':
      return `${column} over time, ${table}`;
    case 'bars':
      return `Rows per ${column}, ${table}`;
    case 'distribution':
      return `Distribution of ${column}, ${table}`;
    case 'top':
      return `Top ${column}, ${table}`;
  }
}

/** Whether a kind of card can be made of the column. */
export function fits(kind: CardKind, column: Column): boolean {
  const { isNumber } = WIRE_TYPES[column.type];
  switch (kind) {
    case 'table':
      return false;
    case 'number':
    case 'line':
    case 'distribution':
      return isNumber;
    case 'bars':
    case 'top':
      return !isNumber;
  }
}

/**
 * The board of a configuration: a number for each aggregate, and of the other tables how many rows they have; the
 * tables, alerts before all others; and a chart for each number that has a time. Groups are no points in time, unless
 * they are windows: such a table is small, and has no chart.
 */
export function defaultCards(tables: readonly TableInfo[]): Card[] {
  const isOf = (kind: string) => (table: TableInfo) => table.kind === kind;
  const aggregates = tables.filter(isOf('aggregate'));
  const alerts = tables.filter(isOf('alert'));
  const others = tables.filter((table) => !aggregates.includes(table) && !alerts.includes(table));
  const groups = aggregates.filter(({ columns }) => !columns.some(({ name }) => name === WINDOW_COLUMN));
  const charts = new Map<string, Card>();
  for (const { name, columns } of [...aggregates, ...others].filter((table) => !groups.includes(table))) {
    if (!columns.some((column) => column.name === 'ts' && column.type === 'timestamp')) continue;
    for (const column of columns) {
      if (fits('line', column) && !charts.has(column.name)) {
        charts.set(column.name, card('line', name, { column: column.name }));
      }
    }
  }
  return [
    ...[...aggregates.map(figure), ...others.map(({ name }) => card('number', name))].slice(
      0,
      Math.max(MOST_NUMBERS, aggregates.length),
    ),
    ...[...alerts, ...aggregates, ...others].map((table) =>
      card('table', table.name, groups.includes(table) ? { height: GROUPS_HEIGHT } : {}),
    ),
    ...[...charts.values()].slice(0, MOST_CHARTS),
  ];
}

/** What an aggregate comes to over its groups: a sum, unless its number is already a mean, a least or a greatest one. */
function figure({ name, columns }: TableInfo): Card {
  const numbers = columns.filter((column) => fits('number', column));
  const added = numbers.find((column) => measureOf(column.name) === 'sum');
  const column = (added ?? numbers[0])?.name;
  return card('number', name, column === undefined ? {} : { column, measure: measureOf(column) });
}

function measureOf(column: string): Measure {
  return MEASURE_NAMES.find(([names]) => names.test(column))?.[1] ?? 'sum';
}

/** The cards with one more, unless it is there already. */
export function added(cards: readonly Card[], one: Card): readonly Card[] {
  const isThere = cards.some((each) => cardId(each) === cardId(one));
  return isThere || cards.length >= MAX_CARDS ? cards : [...cards, one];
}

/** The cards with one of them at another place. */
export function movedCard(cards: readonly Card[], from: number, to: number): readonly Card[] {
  const one = cards[from];
  if (one === undefined) return cards;
  const others = cards.toSpliced(from, 1);
  return others.toSpliced(Math.max(0, Math.min(to, others.length)), 0, one);
}

/** The card with another size, as far as there is room. */
export function resized(one: Card, width: number, height: number): Card {
  return { ...one, width: clamped(width, NARROWEST, WIDEST), height: clamped(height, 1, HIGHEST) };
}

/** The cards as the address has them. */
export function encodeCards(cards: readonly Card[]): string {
  if (cards.length === 0) return NO_CARDS;
  return cards
    .map(({ kind, table, column, measure, width, height, query, view }) => {
      const fields = [
        kind,
        table,
        String(width),
        String(height),
        column,
        measure === 'rows' ? '' : measure,
        query,
        view,
      ];
      return fields.map(encodeURIComponent).join(',').replace(/,+$/, '');
    })
    .join(';');
}

/** The cards of a text that encodeCards made; what cannot be read of it is left out. */
export function decodeCards(text: string): Card[] {
  return checkedCards(
    text.split(';').map((part) => {
      const [kind, table, width, height, column = '', measure = '', query = '', view = ''] = part
        .split(',')
        .map(decoded);
      return {
        kind,
        table,
        width: Number(width),
        height: Number(height),
        column,
        measure: measure || 'rows',
        query,
        view,
      };
    }),
  );
}

/** Whatever is given, as far as it is cards, each once. */
export function checkedCards(found: unknown): Card[] {
  if (!Array.isArray(found)) return [];
  let cards: readonly Card[] = [];
  for (const one of found) if (isCard(one)) cards = added(cards, resized(one, one.width, one.height));
  return [...cards];
}

function isCard(value: unknown): value is Card {
  if (typeof value !== 'object' || value === null) return false;
  const one = value as Record<string, unknown>;
  return (
    CARD_KINDS.some((kind) => kind === one.kind) &&
    MEASURES.some((measure) => measure === one.measure) &&
    /^[A-Za-z_][A-Za-z0-9_]*$/.test(String(one.table)) &&
    ['column', 'query', 'view'].every((name) => typeof one[name] === 'string') &&
    Number.isFinite(one.width) &&
    Number.isFinite(one.height)
  );
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return '';
  }
}

function clamped(value: number, least: number, most: number): number {
  return Math.max(least, Math.min(most, Math.round(value)));
}

function capital(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1);
}
