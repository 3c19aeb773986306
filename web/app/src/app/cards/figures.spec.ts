import { figureText } from './figures';

describe('figureText', () => {
  it.each([
    [0, '0'],
    [12.345, '12.35'],
    [-99_999.5, '-99,999.5'],
    [123_456.78, '123,457'],
    [12_345_678_901, '12.35B'],
  ])('writes %d as %s', (value, text) => {
    expect(figureText(value)).toBe(text);
  });
});
