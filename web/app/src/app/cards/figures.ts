import { COUNT } from '../count';

const FIGURE = new Intl.NumberFormat('en-US', { maximumFractionDigits: 2 });
const SHORT = new Intl.NumberFormat('en-US', { notation: 'compact', maximumFractionDigits: 2 });
/** From here on nobody looks at decimals, and from there on at single digits. */
const WHOLE = 100_000;
const LONG = 1_000_000_000;

/** A number that is read from afar. */
export function figureText(value: number): string {
  const size = Math.abs(value);
  if (size >= LONG) return SHORT.format(value);
  return size >= WHOLE ? COUNT.format(Math.round(value)) : FIGURE.format(value);
}
