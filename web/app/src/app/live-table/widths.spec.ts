import { fitted } from './widths';

const text = (width: number) => ({ width, canGive: true });
const number = (width: number) => ({ width, canGive: false });

describe('fitted', () => {
  it('gives each column what it needs where there is room', () => {
    expect(fitted([text(300), number(80)], 400)).toEqual([300, 80]);
  });

  it('takes from the widest texts first, and never from numbers', () => {
    expect(fitted([text(110), text(300), number(200)], 500)).toEqual([110, 190, 200]);
    expect(fitted([text(250), text(300), number(200)], 500)).toEqual([150, 150, 200]);
  });

  it('leaves enough of a text to tell something', () => {
    expect(fitted([text(300), text(40), number(200)], 100)).toEqual([96, 40, 200]);
  });
});
