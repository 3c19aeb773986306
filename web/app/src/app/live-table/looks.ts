import { type Column, type TableUpdate, type Value, WIRE_TYPES } from 'table-hub';
import { type Look, lookOf } from './rules';
import { GROUPED_FROM, NO_SHAPE, type Shape, grown, shown, zone } from './values';
import type { ViewState } from './view-state';
import type { Needed } from './widths';

const PADDING = 24;
/** The mark of a sort in a heading. */
const SORT_EXTRA = 22;
/** The button of a filter, where it is always there: under a pointer it shows itself over the heading. */
const FILTER_EXTRA = 26;
/** The mark of the way that a number went. */
const TREND_EXTRA = 14;
const LEAST = 64;
/** A text that is cut here still tells something. */
const LEAST_OF_TEXT = 80;
const GREATEST = 380;
const MEASURED_ROWS = 100;

/** How the columns of a table are written: what their values have in common, and what the viewer has set up. */
export class Looks {
  private shapes = new Map<string, Shape>();
  private seen = new WeakSet<TableUpdate['rows'][number]>();
  private setUp: Pick<ViewState, 'formats' | 'rules'> = { formats: {}, rules: {} };

  /** Takes what the viewer sets up. */
  setUpAs(setUp: Pick<ViewState, 'formats' | 'rules'>): void {
    this.setUp = setUp;
  }

  /** Other columns begin anew. */
  forget(): void {
    this.shapes = new Map();
    this.seen = new WeakSet();
  }

  /** Whether the rows change how others are written. */
  take({ columns, rows }: TableUpdate, now: number): boolean {
    let isChanged = false;
    const fresh = rows.filter((row) => !this.seen.has(row));
    for (const row of fresh) this.seen.add(row);
    columns.forEach((column, place) => {
      const before = this.shapeOf(column);
      const after = grown(
        before,
        fresh.map((row) => row[place]),
        column.type,
        now,
      );
      if (after !== before) this.shapes.set(column.name, after);
      // A new greatest value changes nothing but bars.
      isChanged ||= !isWrittenAlike(before, after, this.hasBar(column));
    });
    return isChanged;
  }

  text(value: Value | undefined, column: Column): string {
    const { icon } = this.look(value, column);
    const text = shown(value, column.type, this.setUp.formats[column.name], this.shapeOf(column));
    return icon ? `${icon} ${text}` : text;
  }

  look(value: Value | undefined, column: Column): Look {
    return lookOf(value, this.setUp.rules[column.name], this.shapeOf(column));
  }

  /** Columns whose texts change by themselves. */
  get relative(): string[] {
    return Object.entries(this.setUp.formats).flatMap(([name, { kind }]) => (kind === 'relative' ? [name] : []));
  }

  /** The width that a column's heading and its values need, within reason; of texts less will do, but not of the heading. */
  needs(column: Column, place: number, rows: TableUpdate['rows'], measure: (text: string) => number): Needed {
    const { align, isNumber } = WIRE_TYPES[column.type];
    const texts = rows.slice(0, MEASURED_ROWS).map((row) => measure(this.text(row[place], column)));
    const extra = isNumber ? TREND_EXTRA : 0;
    const heading = measure(headingOf(column)) + (hasPointer() ? 0 : FILTER_EXTRA);
    const needed = Math.max(heading + (hasPointer() ? SORT_EXTRA : 0), ...texts.map((width) => width + extra));
    const width = Math.round(Math.max(LEAST, Math.min(GREATEST, needed + PADDING)));
    const canGive = align === 'left' && column.type !== 'timestamp';
    return { width, least: canGive ? Math.min(width, Math.max(LEAST_OF_TEXT, Math.ceil(heading + PADDING))) : width };
  }

  private shapeOf({ name }: Column): Shape {
    return this.shapes.get(name) ?? NO_SHAPE;
  }

  private hasBar({ name }: Column): boolean {
    return this.setUp.rules[name]?.some(({ bar }) => bar) ?? false;
  }
}

/** A column's heading; those of times say in which zone they are. */
export function headingOf({ name, type }: Column): string {
  return type === 'timestamp' ? `${name} (${zone()})` : name;
}

function hasPointer(): boolean {
  return matchMedia('(hover: hover)').matches;
}

function isWrittenAlike(one: Shape, other: Shape, hasBar: boolean): boolean {
  return (
    one.decimals === other.decimals &&
    one.hasDays === other.hasDays &&
    one.hasMillis === other.hasMillis &&
    one.greatest >= GROUPED_FROM === other.greatest >= GROUPED_FROM &&
    (!hasBar || one.greatest === other.greatest)
  );
}
