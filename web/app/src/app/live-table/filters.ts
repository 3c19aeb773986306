import type { Column, WireType } from 'table-hub';

/** What AG Grid's filter dialogues say about one column. */
export interface FilterModel {
  filterType?: string;
  type?: string | null;
  filter?: string | number | null;
  filterTo?: string | number | null;
  dateFrom?: string | null;
  dateTo?: string | null;
}

const OPERATORS: Record<string, string> = {
  contains: 'contains',
  startsWith: 'starts with',
  equals: '=',
  notEqual: '!=',
  lessThan: '<',
  lessThanOrEqual: '<=',
  greaterThan: '>',
  greaterThanOrEqual: '>=',
  inRange: 'between',
};

/** The kind of the grid's filter of a column, as columns.ts sets it up. */
const FILTER_TYPES: Record<WireType, 'text' | 'number' | 'date'> = {
  string: 'text',
  bool: 'text',
  int32: 'number',
  int64: 'number',
  float64: 'number',
  decimal: 'number',
  date: 'date',
  timestamp: 'date',
  json: 'text',
  binary: 'text',
};

/** The conditions of the wire for the filters of the grid; those of columns that are gone are left out. */
export function conditions(model: Record<string, FilterModel>, columns: readonly Column[]): unknown[][] {
  return columns.flatMap((column) => {
    const filter = model[column.name];
    const condition = filter && conditionOf(column, filter);
    return condition ? [condition] : [];
  });
}

/** The filters of the grid for conditions of the wire. */
export function filterModel(
  filter: readonly (readonly unknown[])[],
  columns: readonly Column[],
): Record<string, FilterModel> {
  const model: Record<string, FilterModel> = {};
  for (const [name, operator, value] of filter) {
    const column = columns.find((each) => each.name === name);
    const found = column && modelOf(column, String(operator), value);
    if (found) model[column.name] = found;
  }
  return model;
}

function modelOf({ type }: Column, operator: string, value: unknown): FilterModel | null {
  const filterType = FILTER_TYPES[type];
  if (operator === 'is null') return { filterType, type: 'blank' };
  if (operator === 'is not null') return { filterType, type: 'notBlank' };
  if (typeof value === 'boolean') return { filterType, type: String(value) };
  const named = Object.entries(OPERATORS).find(([, each]) => each === operator)?.[0];
  const [from, to] = (Array.isArray(value) ? value : [value, null]) as [string | number | null, string | number | null];
  if (named === undefined) return null;
  return filterType === 'date'
    ? { filterType, type: named, dateFrom: local(from), dateTo: local(to) }
    : { filterType, type: named, filter: from, filterTo: to };
}

function conditionOf(column: Column, filter: FilterModel): unknown[] | null {
  const type = filter.type ?? '';
  if (type === 'blank') return [column.name, 'is null'];
  if (type === 'notBlank') return [column.name, 'is not null'];
  if (type === 'true' || type === 'false') return [column.name, '=', type === 'true'];
  const operator = OPERATORS[type];
  const [from, to] = bounds(column, filter);
  if (operator === undefined || from === null) return null;
  if (operator !== 'between') return [column.name, operator, from];
  return to === null ? null : [column.name, operator, [from, to]];
}

function bounds(column: Column, filter: FilterModel): [string | number | null, string | number | null] {
  if (filter.filterType === 'date') {
    return [instant(column, filter.dateFrom), instant(column, filter.dateTo)];
  }
  return [filter.filter ?? null, filter.filterTo ?? null];
}

/** The grid has local times ("2026-01-31 09:30:00"), the wire has UTC. */
function instant(column: Column, local: string | null | undefined): string | null {
  if (!local) return null;
  if (column.type === 'date') return local.slice(0, 10);
  return new Date(local.replace(' ', 'T')).toISOString();
}

/** The other way round. */
function local(time: string | number | null): string | null {
  if (time === null) return null;
  if (!String(time).includes('T')) return `${time} 00:00:00`;
  const date = new Date(time);
  const shifted = new Date(date.getTime() - date.getTimezoneOffset() * 60_000);
  return shifted.toISOString().slice(0, 19).replace('T', ' ');
}
