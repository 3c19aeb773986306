import { type Column, type TableInfo, WIRE_TYPES } from 'table-hub';
import { isObject, isOneOf, isString } from 'table-hub/guards';
import { OWN_TABLES } from '../own-tables';

export const CARD_KINDS = ['table', 'number', 'line', 'bars', 'distribution', 'top', 'groups'] as const;
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
  /** What a chart or a number is of, or the groups go by; empty for tables, and for the number of rows. */
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
  groups: { width: 3, height: 3 },
};
const MEASURE_NAMES: readonly (readonly [RegExp, Exclude<Measure, 'rows'>])[] = [
  [/^(avg|mean|average)|(avg|mean|average)$/i, 'mean'],
  [/^(min|least)|(min|least)$/i, 'least'],
  [/^(max|greatest)|(max|greatest)$/i, 'greatest'],
];
const MOST_CHARTS = 4;
const MOST_NUMBERS = 4;
/** Beside a chart. */
const MOST_GROUPS = 2;
/** So that the tables under them are on the first screen. */
const UPPER_HEIGHT = 2;

/** A card of its kind's usual size. */
export function card(kind: CardKind, table: string, more: Partial<Card> = {}): Card {
  return { kind, table, column: '', measure: 'rows', query: '', view: '', ...SIZES[kind], ...more };
}

/** The same for cards that show the same. */
export function cardId({ kind, table, column, measure, query }: Card): string {
  return [kind, table, column, kind === 'number' ? measure : '', query].join(' ');
}

/** What a card is called; where the tables are known, groups say what they go by. */
export function cardTitle({ kind, table, column, measure }: Card, tables: readonly TableInfo[] = []): string {
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
    case 'groups':
      return `${column} by ${groupNames(tables.find(({ name }) => name === table)?.columns)}, ${table}`;
  }
}

/** The columns that tell the groups of a table apart. */
export function isGroupName({ type }: Column): boolean {
  return !WIRE_TYPES[type].isNumber && type !== 'timestamp';
}

function groupNames(columns: readonly Column[] = []): string {
  const names = columns.filter(isGroupName).map(({ name }) => name);
  return names.join(' and ') || 'group';
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
    case 'groups':
      return isNumber;
    case 'bars':
    case 'top':
      return !isNumber;
  }
}

/** Those that the board of a configuration is made from. */
export function boardTables(tables: readonly TableInfo[]): readonly TableInfo[] {
  return tables.filter(({ name }) => !OWN_TABLES.has(name));
}

/**
 * The board of a configuration, from what moves to what is looked up: a number for each aggregate, and of the other
 * tables how many rows they have; a chart of a number over time, beside it the groups of aggregates and views; then
 * the tables, and the other charts.
 */
export function defaultCards(all: readonly TableInfo[]): Card[] {
  const tables = boardTables(all);
  const aggregates = tables.filter(({ kind }) => kind === 'aggregate');
  const others = tables.filter(({ kind }) => kind !== 'aggregate');
  const grouped = [...aggregates, ...others].filter(isGrouped);
  const groups = grouped.map(({ name, columns }) => card('groups', name, { column: mainNumber(columns) ?? '' }));
  const charts = chartsOf([...aggregates, ...others].filter((table) => !grouped.includes(table)));
  const counts = others.filter(({ kind }) => kind !== 'view').map(({ name }) => card('number', name));
  const figures = [...aggregates.map(figure), ...counts].slice(0, Math.max(MOST_NUMBERS, aggregates.length));
  // One number alone would be lost in its line.
  const means = charts.map(({ table, column }) => card('number', table, { column, measure: 'mean' }));
  const numbers = figures.length === 1 ? [...figures, ...means].slice(0, MOST_NUMBERS) : figures;
  const low = (each: Card): Card => ({ ...each, height: UPPER_HEIGHT });
  const beside = groups.slice(0, MOST_GROUPS).map(low);
  const wide = charts.slice(0, beside.length ? 1 : 2).map(low);
  return [
    ...shared(numbers),
    ...shared(wide, beside.length ? WIDEST / 2 : WIDEST),
    ...shared(beside, wide.length ? WIDEST / 2 : WIDEST),
    ...paired(
      [...aggregates, ...others].filter((table) => !grouped.includes(table)).map(({ name }) => card('table', name)),
    ),
    ...groups.slice(beside.length),
    ...paired(charts.slice(wide.length)),
  ];
}

/** Cards that share a width, each as wide as the others. */
function shared(cards: readonly Card[], width = WIDEST): Card[] {
  return cards.map((each) => ({ ...each, width: Math.max(NARROWEST, Math.floor(width / cards.length)) }));
}

/** Two beside each other; the last one alone where they are odd. */
function paired(cards: readonly Card[]): Card[] {
  return cards.map((each, place) =>
    place === cards.length - 1 && place % 2 === 0 ? { ...each, width: WIDEST } : { ...each, width: WIDEST / 2 },
  );
}

/** A chart for each number that has a time; those of measured values before those of counted ones. */
function chartsOf(tables: readonly TableInfo[]): Card[] {
  const found = new Map<string, { card: Card; isMeasured: boolean }>();
  for (const { name, columns, kind } of tables) {
    if (kind === 'view' || !columns.some((column) => column.name === 'ts' && column.type === 'timestamp')) continue;
    for (const column of columns) {
      if (!fits('line', column) || found.has(column.name)) continue;
      found.set(column.name, { card: card('line', name, { column: column.name }), isMeasured: isMeasured(column) });
    }
  }
  const charts = [...found.values()].sort((one, other) => Number(other.isMeasured) - Number(one.isMeasured));
  return charts.map((each) => each.card).slice(0, MOST_CHARTS);
}

/** Whether a table is a few groups with a number each, as those of an aggregate without windows are. */
function isGrouped({ kind, columns }: TableInfo): boolean {
  if (kind !== 'view' && kind !== 'aggregate') return false;
  const isDivided = columns.some(({ name }) => name === 'window_start');
  return !isDivided && columns.some(({ type }) => type === 'string') && mainNumber(columns) !== undefined;
}

/** What an aggregate comes to over its groups: a sum, unless its number is already a mean, a least or a greatest one. */
function figure({ name, columns }: TableInfo): Card {
  const column = mainNumber(columns);
  return card('number', name, column === undefined ? {} : { column, measure: measureOf(column) });
}

/** The number that matters most, by the looks of it: a sum before others, and of sums one of measured values. */
function mainNumber(columns: readonly Column[]): string | undefined {
  const numbers = columns.filter((column) => fits('number', column));
  const sums = numbers.filter(({ name }) => measureOf(name) === 'sum');
  return (sums.find(isMeasured) ?? sums[0] ?? numbers[0])?.name;
}

function isMeasured({ type }: Column): boolean {
  return type === 'float64' || type === 'decimal';
}

/** What the numbers of a column come to, by its name. */
export function measureOf(column: string): Exclude<Measure, 'rows'> {
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
  return (
    isObject(value) &&
    isOneOf(value.kind, CARD_KINDS) &&
    isOneOf(value.measure, MEASURES) &&
    /^[A-Za-z_][A-Za-z0-9_]*$/.test(String(value.table)) &&
    ['column', 'query', 'view'].every((name) => isString(value[name])) &&
    Number.isFinite(value.width) &&
    Number.isFinite(value.height)
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
