import { NO_SHAPE, clockTime, duration, grown, localTimes, shown, sought, whole } from './values';

const NOW = Date.now();
const TODAY = new Date(NOW).toISOString().slice(0, 11);

describe('shown', () => {
  it('shows times in the time zone of the viewer', () => {
    const local = new Date(2026, 0, 31, 9, 5, 7);
    const iso = local.toISOString().replace('000Z', '123456Z');
    expect(shown(iso, 'timestamp')).toBe('2026-01-31 09:05:07.123');
    expect(whole(iso, 'timestamp')).toMatch(/^2026-01-3.*Z\n2026-01-31 09:05:07.123 UTC/);
  });

  it('shows times short until they must be long', () => {
    const now = new Date(NOW).toISOString().replace(/\.\d+Z/, '.000000Z');
    const short = grown(NO_SHAPE, [now, null], 'timestamp', NOW);
    expect(shown(now, 'timestamp', undefined, short)).toMatch(/^\d\d:\d\d:\d\d$/);
    const long = grown(short, ['2020-01-31T09:30:00.500000Z'], 'timestamp', NOW);
    expect(shown(now, 'timestamp', undefined, long)).toMatch(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.000$/);
    expect(grown(long, [now], 'timestamp', NOW)).toBe(long);
  });

  it('gives all numbers of a column the same decimals', () => {
    const shape = grown(NO_SHAPE, [206_254.9, 31_531.67, null, 3], 'float64', NOW);
    const texts = [206_254.9, 31_531.67, 3].map((value) => shown(value, 'float64', undefined, shape));
    expect(texts).toEqual(['206,254.90', '31,531.67', '3.00']);
  });

  it('puts commas into a column of large whole numbers and none into years', () => {
    const years = grown(NO_SHAPE, [2013, 2026], 'int64', NOW);
    expect(shown(2013, 'int64', undefined, years)).toBe('2013');
    const large = grown(years, ['9007199254740993'], 'int64', NOW);
    expect(shown('9007199254740993', 'int64', undefined, large)).toBe('9,007,199,254,740,993');
    expect(shown(2013, 'int64', undefined, large)).toBe('2,013');
    expect(shown(null, 'string')).toBe('');
  });

  it('rounds no decimal and shows documents whole', () => {
    const shape = grown(NO_SHAPE, ['12345678901234567890.50', '3.00'], 'decimal', NOW);
    expect(shown('12345678901234567890.50', 'decimal', undefined, shape)).toBe('12,345,678,901,234,567,890.50');
    expect(whole('{"a":[1]}', 'json')).toBe('{\n  "a": [\n    1\n  ]\n}');
    expect(whole('{"id":9007199254740993}', 'json')).toBe('{\n  "id": 9007199254740993\n}');
    expect(whole('no document', 'json')).toBe('no document');
  });

  it.each([
    [1234.5, { kind: 'money', currency: 'EUR' }, '€1,234.50'],
    [0.256, { kind: 'percent' }, '25.6%'],
    [1_500_000, { kind: 'bytes' }, '1.5 MB'],
    [12, { kind: 'bytes' }, '12 B'],
    [90_000, { kind: 'duration' }, '90 s'],
    ['9007199254740993', { kind: 'number' }, '9,007,199,254,740,993'],
  ] as const)('formats %s as %o', (value, format, text) => {
    expect(shown(value, typeof value === 'string' ? 'int64' : 'float64', format)).toBe(text);
  });

  it('tells how long ago something was', () => {
    const iso = new Date(NOW - 42_000).toISOString();
    expect(shown(iso, 'timestamp', { kind: 'relative' }, undefined, NOW)).toBe('42 s ago');
    expect(shown(Math.round(NOW / 1000) + 600, 'int64', { kind: 'relative' }, undefined, NOW)).toBe('in 10 min');
    expect(shown(NOW - 3_700, 'int64', { kind: 'relative' }, undefined, NOW)).toBe('3 s ago');
    expect(shown(NOW - 700, 'int64', { kind: 'relative' }, undefined, NOW)).toBe('now');
    expect(shown('no time', 'string', { kind: 'relative' })).toBe('no time');
  });
});

describe('sought', () => {
  it('turns times that the viewer sees into those that the server has', () => {
    const time = new Date(2026, 0, 31, 9, 5, 7);
    const utc = time.toISOString();
    expect(sought('2026-01-31 09:05:07.1')).toBe(`${utc.slice(0, 10)} ${utc.slice(11, 19)}.1`);
    expect(sought('2026-01-31 09:05')).toBe(`${utc.slice(0, 10)} ${utc.slice(11, 16)}`);
    expect(sought('09:05')).toBe(new Date(`${TODAY}09:05:00`).toISOString().slice(11, 16));
  });

  it.each(['ada', '206,254.90', '2026-01-31', '99:99'])('leaves %s as it is', (text) => {
    expect(sought(text)).toBe(text);
  });
});

describe('localTimes', () => {
  it('writes times in a sentence as the clock of the viewer has them', () => {
    const time = new Date(2026, 0, 31, 9, 5, 7);
    expect(localTimes(`silent since ${time.toISOString()}; it was live`)).toMatch(
      new RegExp(`^silent since ${clockTime(time)} UTC.*; it was live$`),
    );
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
