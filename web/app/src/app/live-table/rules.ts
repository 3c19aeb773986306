import type { Value } from 'table-hub';
import type { Rule } from './view-state';
import type { Shape } from './values';

/** What the rules make of a cell. */
export interface Look {
  readonly color: string;
  readonly fontWeight: string;
  readonly backgroundImage: string;
  readonly icon: string;
}

const PLAIN: Look = { color: '', fontWeight: '', backgroundImage: '', icon: '' };

/** How a cell looks; of two rules that hold, the later one decides. */
export function lookOf(value: Value | undefined, rules: readonly Rule[] | undefined, { greatest }: Shape): Look {
  if (rules === undefined) return PLAIN;
  return rules
    .filter((rule) => holds(value ?? null, rule))
    .reduce(
      (look, { colour, bold, icon, bar }) => ({
        color: colour && !bar ? `var(--${colour})` : look.color,
        fontWeight: bold ? '700' : look.fontWeight,
        icon: icon || look.icon,
        backgroundImage: bar ? barOf(value ?? null, colour || 'accent', greatest) : look.backgroundImage,
      }),
      PLAIN,
    );
}

/** Whether a rule's condition is so; nothing is greater or less than an empty value. */
export function holds(value: Value, { operator, value: wanted }: Rule): boolean {
  if (operator === 'always') return true;
  if (operator === 'is empty') return value === null || value === '';
  // A rule without a value is not finished.
  if (value === null || wanted === '') return false;
  if (operator === 'contains') return String(value).toLowerCase().includes(wanted.toLowerCase());
  const number = Number(wanted);
  const isNumber = typeof value !== 'boolean' && !Number.isNaN(number) && !Number.isNaN(Number(value));
  const [one, other] = isNumber ? [Number(value), number] : [String(value), wanted];
  switch (operator) {
    case '>':
      return one > other;
    case '>=':
      return one >= other;
    case '<':
      return one < other;
    case '<=':
      return one <= other;
    case '=':
      return one === other;
    case '!=':
      return one !== other;
  }
}

function barOf(value: Value, colour: string, greatest: number): string {
  const share = greatest > 0 && value !== null ? Math.min(1, Math.abs(Number(value)) / greatest) : 0;
  if (!(share > 0)) return 'none';
  const shade = `color-mix(in srgb, var(--${colour}) 35%, transparent)`;
  const end = `${(100 * share).toFixed(1)}%`;
  return `linear-gradient(to right, ${shade} ${end}, transparent ${end})`;
}
