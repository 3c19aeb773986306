/** What a column needs, and whether it can be read when it gets less. */
export interface Needed {
  readonly width: number;
  readonly canGive: boolean;
}

/** A text that is cut here still tells something. */
const NARROWEST = 96;

/** Widths for columns that share a room; where they do not fit, the widest texts give way first. */
export function fitted(columns: readonly Needed[], room: number): number[] {
  const givers = columns.filter(({ canGive }) => canGive).map(({ width }) => width);
  const fixed = columns.filter(({ canGive }) => !canGive).reduce((sum, { width }) => sum + width, 0);
  const most = Math.max(NARROWEST, Math.floor(level(givers, room - fixed)));
  return columns.map(({ width, canGive }) => (canGive ? Math.min(width, most) : width));
}

/** The width that none may exceed so that all fit. */
function level(widths: readonly number[], room: number): number {
  const sorted = widths.toSorted((one, other) => one - other);
  let left = room;
  for (const [place, width] of sorted.entries()) {
    const share = left / (sorted.length - place);
    if (width > share) return share;
    left -= width;
  }
  return Infinity;
}
