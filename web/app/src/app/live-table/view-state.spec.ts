import {
  FORMAT_KINDS,
  PLAIN_VIEW,
  RULE_COLOURS,
  RULE_ICONS,
  RULE_OPERATORS,
  type ViewState,
  decodeView,
  encodeView,
} from './view-state';

/** Numbers that look random and are the same every time. */
function draws(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return Math.floor((state / 2_147_483_648) * below);
  };
}

function drawn(seed: number): ViewState {
  const draw = draws(seed);
  const one = <T>(from: readonly T[]): T => from[draw(from.length)] as T;
  const some = <T>(make: () => T): T[] => Array.from({ length: draw(4) }, make);
  const text = () => one(['', 'a', 'Grüße & "x"', 'ts', 'a.b', '日本', '\u0000', '__proto__', '🎉']);
  const record = <T>(make: () => T) => Object.fromEntries(some((): [string, T] => [text(), make()]));
  return {
    hidden: some(text),
    columns: some(text),
    widths: record(() => 1 + draw(900)),
    sort: some(() => [text(), one(['asc', 'desc'] as const)]),
    filter: some(() => [text(), one(['=', 'between']), one<unknown>([1.5, '9007199254740993', [1, null], true])]),
    search: text(),
    order: one(['newest', 'arrival'] as const),
    offset: draw(1_000_000),
    formats: record(() => ({ kind: one(FORMAT_KINDS), ...(draw(2) && { currency: 'EUR' }) })),
    rules: record(() =>
      some(() => ({
        operator: one(RULE_OPERATORS),
        value: text(),
        colour: one(RULE_COLOURS),
        bold: draw(2) === 1,
        icon: one(RULE_ICONS),
        bar: draw(2) === 1,
      })),
    ),
  };
}

describe('a view as a text', () => {
  it('b43 comes back the same, whatever it is', () => {
    for (let seed = 0; seed < 500; seed++) {
      const view = drawn(seed);
      const text = encodeView(view);
      expect(text).toMatch(/^[\w-]*$/);
      expect(decodeView(text)).toEqual(view);
    }
  });

  it('is empty where nothing was set up', () => {
    expect(encodeView(PLAIN_VIEW)).toBe('');
    expect(decodeView('')).toEqual(PLAIN_VIEW);
  });

  it.each(['1', '1!', '2abc', '1bnVsbA', 'x'.repeat(1000)])('is plain where it cannot be read: %s', (text) => {
    expect(decodeView(text)).toEqual(PLAIN_VIEW);
  });

  it('leaves out what has the wrong type and keeps the rest', () => {
    const text = `1${btoa(JSON.stringify({ sort: [['a', 'up']], hidden: ['b'], offset: -1, rules: { a: [{}] }, more: 1 }))}`;
    expect(decodeView(text.replaceAll('=', ''))).toEqual({ ...PLAIN_VIEW, hidden: ['b'] });
  });
});
