import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Pace } from './pace';

describe('Pace', () => {
  let passed: number[];
  let pace: Pace<number>;

  beforeEach(() => {
    vi.useFakeTimers();
    passed = [];
    pace = new Pace<number>(100, (value) => passed.push(value));
  });

  afterEach(() => {
    vi.useRealTimers();
  });

  it('passes the first on at once, and of the others the newest after a rest', () => {
    for (const value of [1, 2, 3]) pace.take(value);
    expect(passed).toEqual([1]);
    vi.advanceTimersByTime(100);
    expect(passed).toEqual([1, 3]);
    pace.take(4);
    expect(passed).toEqual([1, 3]);
    vi.advanceTimersByTime(100);
    expect(passed).toEqual([1, 3, 4]);
    vi.advanceTimersByTime(100);
    pace.take(5);
    expect(passed).toEqual([1, 3, 4, 5]);
  });

  it('forgets what waits when it begins anew', () => {
    pace.take(1);
    pace.take(2);
    pace.restart();
    vi.advanceTimersByTime(1_000);
    expect(passed).toEqual([1]);
    pace.take(3);
    expect(passed).toEqual([1, 3]);
  });
});
