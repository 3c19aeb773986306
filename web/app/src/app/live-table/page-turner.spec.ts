import { PageTurner } from './page-turner';

describe('PageTurner', () => {
  it('stops at the end first, and turns when scrolling begins again', () => {
    const turner = new PageTurner();
    expect(turner.turn(true, false, false, 1_000)).toBeNull();
    expect(turner.turn(true, false, true, 1_050)).toBeNull();
    expect(turner.turn(true, false, true, 1_400)).toBe('next');
    expect(turner.turn(true, true, true, 1_500)).toBeNull();
    expect(turner.turn(false, true, false, 2_500)).toBe('previous');
  });
});
