import type { Filter, Order, Sort } from 'table-hub';
import { type Guard, isCount, isListOf, isObject, isOneOf, isString } from 'table-hub/guards';

/** How the values of a column are written; where there is none, its type decides. */
export const FORMAT_KINDS = ['number', 'money', 'percent', 'bytes', 'duration', 'time', 'relative'] as const;
export type FormatKind = (typeof FORMAT_KINDS)[number];

export interface Format {
  readonly kind: FormatKind;
  /** Of money: a code such as EUR. */
  readonly currency?: string;
}

export const RULE_OPERATORS = ['always', '>', '>=', '<', '<=', '=', '!=', 'contains', 'is empty'] as const;
export type RuleOperator = (typeof RULE_OPERATORS)[number];
export const RULE_COLOURS = ['', 'good', 'warn', 'bad', 'accent'] as const;
export type RuleColour = (typeof RULE_COLOURS)[number];
export const RULE_ICONS = ['', '▲', '▼', '●', '⚠', '✓', '✗'] as const;
export type RuleIcon = (typeof RULE_ICONS)[number];

/** How a cell looks while a condition holds. */
export interface Rule {
  readonly operator: RuleOperator;
  readonly value: string;
  readonly colour: RuleColour;
  readonly bold: boolean;
  readonly icon: RuleIcon;
  readonly bar: boolean;
}

/** All that a person sets up about a table: one value, which can be kept, sent and restored. */
export interface ViewState {
  readonly hidden: readonly string[];
  /** The order of the columns; empty is the table's own. */
  readonly columns: readonly string[];
  readonly widths: Readonly<Record<string, number>>;
  readonly sort: Sort;
  readonly filter: Filter;
  readonly search: string;
  readonly order: Order;
  /** How many rows are in front of the page. */
  readonly offset: number;
  readonly formats: Readonly<Record<string, Format>>;
  readonly rules: Readonly<Record<string, readonly Rule[]>>;
}

export const PLAIN_VIEW: ViewState = {
  hidden: [],
  columns: [],
  widths: {},
  sort: [],
  filter: [],
  search: '',
  order: 'newest',
  offset: 0,
  formats: {},
  rules: {},
};

const VERSION = '1';

/** A text for an address; empty where nothing was set up. */
export function encodeView(view: ViewState): string {
  const said = Object.entries(view).filter(
    ([name, value]) => JSON.stringify(value) !== JSON.stringify(PLAIN_VIEW[name as keyof ViewState]),
  );
  if (said.length === 0) return '';
  const bytes = new TextEncoder().encode(JSON.stringify(Object.fromEntries(said)));
  const text = btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''));
  return VERSION + text.replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}

/** The view of a text; what cannot be read of it is plain. */
export function decodeView(text: string): ViewState {
  const found = parsed(text);
  const view = { ...PLAIN_VIEW };
  return {
    hidden: isListOf(found.hidden, isString) ? found.hidden : view.hidden,
    columns: isListOf(found.columns, isString) ? found.columns : view.columns,
    widths: isRecordOf(found.widths, isWidth) ? found.widths : view.widths,
    sort: isListOf(found.sort, isSortKey) ? found.sort : view.sort,
    filter: isListOf(found.filter, isList) ? found.filter : view.filter,
    search: isString(found.search) ? found.search : view.search,
    order: found.order === 'arrival' ? 'arrival' : view.order,
    offset: isCount(found.offset) ? found.offset : view.offset,
    formats: isRecordOf(found.formats, isFormat) ? found.formats : view.formats,
    rules: isRecordOf(found.rules, isRules) ? found.rules : view.rules,
  };
}

function parsed(text: string): Record<string, unknown> {
  if (!text.startsWith(VERSION)) return {};
  try {
    const binary = atob(text.slice(VERSION.length).replaceAll('-', '+').replaceAll('_', '/'));
    const bytes = Uint8Array.from(binary, (character) => character.charCodeAt(0));
    const found: unknown = JSON.parse(new TextDecoder().decode(bytes));
    return isObject(found) ? found : {};
  } catch {
    return {};
  }
}

function isWidth(value: unknown): value is number {
  return isCount(value) && value > 0 && value <= 10_000;
}

function isList(value: unknown): value is unknown[] {
  return Array.isArray(value);
}

function isRecordOf<T>(value: unknown, guard: Guard<T>): value is Record<string, T> {
  return isObject(value) && Object.values(value).every(guard);
}

function isSortKey(value: unknown): value is Sort[number] {
  return Array.isArray(value) && value.length === 2 && isString(value[0]) && isOneOf(value[1], ['asc', 'desc']);
}

function isFormat(value: unknown): value is Format {
  return (
    isObject(value) &&
    isOneOf(value.kind, FORMAT_KINDS) &&
    (value.currency === undefined || (isString(value.currency) && /^[A-Z]{3}$/.test(value.currency)))
  );
}

function isRules(value: unknown): value is Rule[] {
  return isListOf(value, isRule);
}

function isRule(value: unknown): value is Rule {
  return (
    isObject(value) &&
    isOneOf(value.operator, RULE_OPERATORS) &&
    isString(value.value) &&
    isOneOf(value.colour, RULE_COLOURS) &&
    typeof value.bold === 'boolean' &&
    isOneOf(value.icon, RULE_ICONS) &&
    typeof value.bar === 'boolean'
  );
}
