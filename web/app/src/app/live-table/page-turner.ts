const PAUSE_MS = 200;
const SWIPE_PIXELS = 60;

export type Turn = 'next' | 'previous';

/** Whether there is nothing above what is shown of a page, and nothing below. */
export interface Ends {
  readonly isAtStart: boolean;
  readonly isAtEnd: boolean;
}

/**
 * Turns pages by scrolling on at the end of one, with a wheel or a finger. Who arrives there in full swing stops first,
 * so that the last rows can be read: a turn needs a moment of rest before it.
 */
export class PageTurner {
  private lastMove = 0;
  private touchedAt = 0;

  /** `ends` tells where the page is, null while there is none; `turned` hears of the turns that are asked for. */
  constructor(
    private readonly ends: () => Ends | null,
    private readonly turned: (turn: Turn) => void,
  ) {}

  wheeled({ deltaY, timeStamp }: WheelEvent): void {
    if (deltaY !== 0) this.moved(deltaY > 0, timeStamp);
  }

  touched({ touches }: TouchEvent): void {
    this.touchedAt = touches[0]?.clientY ?? 0;
  }

  swiped({ changedTouches, timeStamp }: TouchEvent): void {
    const way = this.touchedAt - (changedTouches[0]?.clientY ?? this.touchedAt);
    if (Math.abs(way) > SWIPE_PIXELS) this.moved(way > 0, timeStamp);
  }

  /** `at` is when the hand moved: a busy page may hear of it later. */
  moved(isDown: boolean, at: number): void {
    const ends = this.ends();
    if (ends === null) return;
    const hasPaused = at - this.lastMove > PAUSE_MS;
    this.lastMove = at;
    if (hasPaused && (isDown ? ends.isAtEnd : ends.isAtStart)) this.turned(isDown ? 'next' : 'previous');
  }
}
