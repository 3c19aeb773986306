import type { Column } from 'table-hub';

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

/** The conditions of the wire for the filters of the grid; those of columns that are gone are left out. */
export function conditions(model: Record<string, FilterModel>, columns: readonly Column[]): unknown[][] {
  return columns.flatMap((column) => {
    const filter = model[column.name];
    const condition = filter && conditionOf(column, filter);
    return condition ? [condition] : [];
  });
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
