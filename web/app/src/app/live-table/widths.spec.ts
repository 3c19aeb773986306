import { fitted } from './widths';

const text = (width: number, least = 60) => ({ width, least });
const number = (width: number) => ({ width, least: width });

describe('fitted', () => {
  it('gives each column what it needs where there is room', () => {
    expect(fitted([text(300), number(80)], 400)).toEqual([300, 80]);
  });

  it('takes from the widest texts first, and never from numbers', () => {
    expect(fitted([text(110), text(300), number(200)], 500)).toEqual([110, 190, 200]);
    expect(fitted([text(250), text(300), number(200)], 500)).toEqual([150, 150, 200]);
  });

  it('leaves each text its least, and takes the more from the others', () => {
    expect(fitted([text(300, 120), text(300), number(200)], 400)).toEqual([120, 80, 200]);
  });

  it('lets texts be read where one has to scroll to the side anyway', () => {
    expect(fitted([text(300), text(40), text(180, 170), number(200)], 300)).toEqual([160, 40, 170, 200]);
  });
});
