import type { ColDef, IFilterOptionDef } from 'ag-grid-community';
import type { Column, Value } from 'table-hub';
import { shown } from './values';

/** A row of the grid. */
export interface GridRow {
  readonly key: string;
  readonly values: readonly Value[];
}

const ORDERED = ['lessThan', 'lessThanOrEqual', 'greaterThan', 'greaterThanOrEqual', 'inRange'];
const EMPTY = ['blank', 'notBlank'];
const DEBOUNCE_MS = 300;
const MIN_WIDTHS: Record<Column['type'], number> = {
  string: 110,
  bool: 80,
  int32: 90,
  int64: 90,
  float64: 125,
  date: 110,
  timestamp: 196,
};

/** How the grid shows the columns of a table. */
export function columnDefs(columns: readonly Column[]): ColDef<GridRow, Value>[] {
  return columns.map((column, place) => ({
    colId: column.name,
    headerName: column.name,
    valueGetter: ({ data }) => data?.values[place] ?? null,
    valueFormatter: ({ value }) => shown(value, column.type),
    cellClass: isNumber(column) ? 'number' : '',
    headerClass: isNumber(column) ? 'ag-right-aligned-header' : '',
    // The server sorts; the rows are in their order already.
    comparator: () => 0,
    minWidth: MIN_WIDTHS[column.type],
    ...filterOf(column),
  }));
}

/** Whether both have the same columns, so that the grid can keep its own. */
export function sameColumns(one: readonly Column[], other: readonly Column[]): boolean {
  return (
    one.length === other.length &&
    one.every(({ name, type }, place) => other[place]?.name === name && other[place].type === type)
  );
}

function isNumber(column: Column): boolean {
  return column.type === 'int32' || column.type === 'int64' || column.type === 'float64';
}

function filterOf(column: Column): Pick<ColDef<GridRow, Value>, 'filter' | 'filterParams'> {
  const common = { maxNumConditions: 1, debounceMs: DEBOUNCE_MS };
  switch (column.type) {
    case 'int32':
    case 'int64':
    case 'float64':
      return {
        filter: 'agNumberColumnFilter',
        filterParams: { ...common, filterOptions: ['equals', 'notEqual', ...ORDERED, ...EMPTY] },
      };
    case 'date':
      return {
        filter: 'agDateColumnFilter',
        filterParams: { ...common, filterOptions: ['equals', ...ORDERED, ...EMPTY] },
      };
    case 'timestamp':
      return {
        filter: 'agDateColumnFilter',
        filterParams: {
          ...common,
          includeTime: true,
          filterOptions: ['greaterThan', 'lessThan', 'inRange', ...EMPTY],
        },
      };
    case 'bool':
      return {
        filter: 'agTextColumnFilter',
        filterParams: { ...common, filterOptions: [...['true', 'false'].map(booleanOption), ...EMPTY] },
      };
    case 'string':
      return {
        filter: 'agTextColumnFilter',
        filterParams: { ...common, filterOptions: ['contains', 'equals', 'notEqual', 'startsWith', ...EMPTY] },
      };
  }
}

function booleanOption(text: string): IFilterOptionDef {
  return { displayKey: text, displayName: text, numberOfInputs: 0, predicate: () => true };
}
