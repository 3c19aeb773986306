/** What a column needs, and the least with which it can still be read. */
export interface Needed {
  readonly width: number;
  readonly least: number;
}

/** Where one has to scroll to the side anyway, a text is as wide as this, so that it can be read. */
const COMFORTABLE = 160;

/** Widths for columns that share a room; where they do not fit, the widest texts give way first. */
export function fitted(columns: readonly Needed[], room: number): number[] {
  const at = (most: number): number[] => columns.map(({ width, least }) => Math.min(width, Math.max(least, most)));
  if (sum(at(0)) > room) return at(COMFORTABLE);
  let [low, high] = [0, Math.max(0, ...columns.map(({ width }) => width))];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (sum(at(middle)) <= room) low = middle;
    else high = middle - 1;
  }
  return at(low);
}

function sum(widths: readonly number[]): number {
  return widths.reduce((all, width) => all + width, 0);
}
