import { arranged, moved } from './card-order';

describe('cards', () => {
  it('come in the stored order, new ones last', () => {
    expect(arranged(['a', 'b', 'c'], ['c', 'gone', 'a'])).toEqual(['c', 'a', 'b']);
  });

  it('move within the board', () => {
    expect(moved(['a', 'b', 'c'], 'a', 1)).toEqual(['b', 'a', 'c']);
    expect(moved(['a', 'b', 'c'], 'c', 9)).toEqual(['a', 'b', 'c']);
  });
});
