const PAUSE_MS = 200;
const AFTER_TURN_MS = 600;

export type Turn = 'next' | 'previous';

/**
 * Turns pages by scrolling on at the end of one. Who arrives there in full swing stops first, so that the last rows can
 * be read.
 */
export class PageTurner {
  private lastMove = 0;
  private lastTurn = 0;

  /** The turn that a movement of the wheel or the finger asks for, if any. */
  turn(down: boolean, atStart: boolean, atEnd: boolean, now: number): Turn | null {
    const paused = now - this.lastMove > PAUSE_MS;
    this.lastMove = now;
    const possible = down ? atEnd : atStart;
    if (!possible || !paused || now - this.lastTurn < AFTER_TURN_MS) return null;
    this.lastTurn = now;
    return down ? 'next' : 'previous';
  }
}
