import { duration, shown } from './values';

describe('shown', () => {
  it('shows times in the time zone of the viewer', () => {
    const local = new Date(2026, 0, 31, 9, 5, 7);
    const iso = local.toISOString().replace('000Z', '123456Z');
    expect(shown(iso, 'timestamp')).toBe('2026-01-31 09:05:07.123');
  });

  it('leaves nothing out of large whole numbers', () => {
    expect(shown('9007199254740993', 'int64')).toBe('9007199254740993');
    expect(shown(1234.5, 'float64')).toBe('1,234.5');
    expect(shown(null, 'string')).toBe('');
  });
});

describe('duration', () => {
  it.each([
    [400, '0.4 s'],
    [42_000, '42 s'],
    [600_000, '10 min'],
    [7_200_000, '2 h'],
    [259_200_000, '3 d'],
  ])('%d ms', (milliseconds, text) => {
    expect(duration(milliseconds)).toBe(text);
  });
});
