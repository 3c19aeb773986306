import type { TableUpdate } from 'table-hub';
import { Latency } from './latency';

const NOW = Date.parse('2026-01-31T10:00:00Z');

function update(...stamps: string[]): TableUpdate {
  return {
    table: 'users_ui',
    columns: [{ name: 'ts', type: 'timestamp' }],
    keys: stamps,
    rows: stamps.map((stamp) => [stamp]),
    total: stamps.length,
    order: 'newest',
    offset: 0,
    generation: 'g1',
    staleSince: null,
    problem: null,
  };
}

describe('Latency', () => {
  it('measures new rows only, by the clock of the server', () => {
    const latency = new Latency();
    latency.heardClock(NOW - 10, NOW + 495, NOW);
    // A slower answer tells less.
    latency.heardClock(NOW - 400, NOW + 100, NOW);
    latency.take(update('2026-01-31T09:59:00.000000Z'), NOW - 100);
    expect(latency.median(NOW)).toBeNull();
    latency.take(update('2026-01-31T09:59:00.000000Z', '2026-01-31T10:00:00.480000Z'), NOW);
    expect(latency.median(NOW)).toBe(20);
    expect(latency.median(NOW + 11_000)).toBeNull();
  });

  it('takes clocks that differ by less than the way of the answer for the same', () => {
    const latency = new Latency();
    latency.heardClock(NOW - 20, NOW - 3, NOW);
    latency.take(update('2026-01-31T09:59:00.000000Z'), NOW - 100);
    latency.take(update('2026-01-31T09:59:59.995000Z'), NOW);
    expect(latency.median(NOW)).toBe(5);
  });

  it('leaves out what was made before somebody looked, and what came before it began anew', () => {
    const latency = new Latency();
    latency.heardClock(NOW, NOW, NOW);
    latency.take(update('2026-01-31T09:59:50.000000Z'), NOW);
    latency.take(update('2026-01-31T09:59:55.000000Z'), NOW + 100);
    expect(latency.median(NOW + 100)).toBeNull();
    latency.take(update('2026-01-31T10:00:00.150000Z'), NOW + 200);
    expect(latency.median(NOW + 200)).toBe(50);
    latency.restart();
    latency.take(update('2026-01-31T10:00:01.000000Z'), NOW + 6_000);
    latency.take(update('2026-01-31T10:00:02.000000Z'), NOW + 6_100);
    expect(latency.median(NOW + 6_100)).toBeNull();
  });

  it('leaves out history', () => {
    const latency = new Latency();
    latency.heardClock(NOW, NOW, NOW);
    latency.take(update('2020-01-01T00:00:00.000000Z'), NOW);
    latency.take(update('2020-01-01T00:00:00.000000Z', '2020-01-01T00:00:01.000000Z'), NOW);
    expect(latency.median(NOW)).toBeNull();
  });
});
