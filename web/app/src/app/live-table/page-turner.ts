const PAUSE_MS = 200;

export type Turn = 'next' | 'previous';

/**
 * Turns pages by scrolling on at the end of one. Who arrives there in full swing stops first, so that the last rows can
 * be read: a turn needs a moment of rest before it. Until the rows of another page are there, nobody asks for a turn.
 */
export class PageTurner {
  private lastMove = 0;

  /** The turn that a movement of the wheel or the finger asks for, if any. */
  turn(down: boolean, atStart: boolean, atEnd: boolean, now: number): Turn | null {
    const paused = now - this.lastMove > PAUSE_MS;
    this.lastMove = now;
    const possible = down ? atEnd : atStart;
    if (!possible || !paused) return null;
    return down ? 'next' : 'previous';
  }
}
