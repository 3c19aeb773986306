import { expect, it } from 'vitest';
import { Backoff, FIRST_MS, LONGEST_MS } from '../src/backoff.js';

it.each([0, 0.5, 1])('b24 waits begin with 150 ms and grow with jitter (%d) up to 10 s', (chance) => {
  const backoff = new Backoff(() => chance);
  const waits = Array.from({ length: 2000 }, () => backoff.next());
  expect(waits[0]).toBe(FIRST_MS);
  expect(FIRST_MS).toBe(150);
  expect(waits).toEqual(waits.toSorted((one, other) => one - other));
  expect(waits.at(-1)).toBe(LONGEST_MS * (0.5 + chance / 2));
  expect(LONGEST_MS).toBe(10_000);
  backoff.reset();
  expect(backoff.next()).toBe(FIRST_MS);
});
