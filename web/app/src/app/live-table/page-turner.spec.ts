import { type Turn, PageTurner } from './page-turner';

describe('PageTurner', () => {
  it('stops at the end first, and turns when scrolling begins again', () => {
    let ends = { isAtStart: false, isAtEnd: false };
    const turns: Turn[] = [];
    const turner = new PageTurner(
      () => ends,
      (turn) => turns.push(turn),
    );
    turner.moved(true, 1_000);
    ends = { isAtStart: false, isAtEnd: true };
    turner.moved(true, 1_050);
    expect(turns).toEqual([]);
    turner.moved(true, 1_400);
    expect(turns).toEqual(['next']);
    ends = { isAtStart: true, isAtEnd: true };
    turner.moved(true, 1_500);
    expect(turns).toEqual(['next']);
    ends = { isAtStart: true, isAtEnd: false };
    turner.moved(false, 2_500);
    expect(turns).toEqual(['next', 'previous']);
  });
});
