import type { CellClassRules, ColDef, IFilterOptionDef } from 'ag-grid-community';
import { type Column, type Value, WIRE_TYPES } from 'table-hub';
import { type Looks, headingOf } from './looks';
import type { GridRow } from './rows';

const ORDERED = ['lessThan', 'lessThanOrEqual', 'greaterThan', 'greaterThanOrEqual', 'inRange'];
const EMPTY = ['blank', 'notBlank'];
const DEBOUNCE_MS = 300;
const TREND_MS = 2_000;
const LEAST_WIDTH = 48;
const CLASSES = {
  left: { cellClass: '', headerClass: '' },
  right: { cellClass: 'number', headerClass: 'ag-right-aligned-header' },
};

/** How the grid shows the columns of a table. */
export function columnDefs(columns: readonly Column[], looks: Looks): ColDef<GridRow, Value>[] {
  return columns.map((column, place) => ({
    colId: column.name,
    headerName: headingOf(column),
    valueGetter: ({ data }) => data?.values[place] ?? null,
    valueFormatter: ({ value }) => looks.text(value, column),
    cellStyle: ({ value }) => {
      const { color, fontWeight, backgroundImage } = looks.look(value, column);
      return { color, fontWeight, backgroundImage };
    },
    ...CLASSES[WIRE_TYPES[column.type].align],
    cellClassRules: WIRE_TYPES[column.type].isNumber ? trendRules(place) : {},
    // The server sorts; the rows are in their order already.
    comparator: () => 0,
    minWidth: LEAST_WIDTH,
    ...filterOf(column),
  }));
}

/** Two classes for each way, in turns: the mark begins anew when a number goes the same way again. */
function trendRules(place: number): CellClassRules<GridRow> {
  const is =
    (isUp: boolean, isOdd: boolean) =>
    ({ data }: { data?: GridRow }): boolean => {
      const trend = data?.trends.get(place);
      if (trend?.isUp !== isUp || Date.now() - trend.at > TREND_MS) return false;
      return (Math.floor(trend.at / 100) % 2 === 1) === isOdd;
    };
  return { up: is(true, false), 'up-again': is(true, true), down: is(false, false), 'down-again': is(false, true) };
}

/** Whether both have the same columns, so that the grid can keep its own. */
export function sameColumns(one: readonly Column[], other: readonly Column[]): boolean {
  return (
    one.length === other.length &&
    one.every(({ name, type }, place) => other[place]?.name === name && other[place].type === type)
  );
}

function filterOf(column: Column): Pick<ColDef<GridRow, Value>, 'filter' | 'filterParams'> {
  const common = { maxNumConditions: 1, debounceMs: DEBOUNCE_MS };
  switch (column.type) {
    case 'int32':
    case 'int64':
    case 'float64':
    case 'decimal':
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
    case 'binary':
      return {
        filter: 'agTextColumnFilter',
        filterParams: { ...common, filterOptions: ['equals', 'notEqual', ...EMPTY] },
      };
    case 'json':
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
