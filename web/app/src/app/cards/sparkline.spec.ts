import { points } from './sparkline';

describe('a line without axes', () => {
  it('begins at zero, so that its height tells how much', () => {
    expect(points([10, 20])).toBe('0,15 100,0');
    expect(points([-10, 10])).toBe('0,30 100,0');
  });

  it('shows only the way of what changes little', () => {
    expect(points([1_000, 1_001, 1_002], false)).toBe('0,30 50,15 100,0');
    expect(points([7, 7], false)).toBe('0,30 100,30');
  });
});
