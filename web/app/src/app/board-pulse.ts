import { Injectable, computed, effect, inject, signal, untracked } from '@angular/core';
import { BoardHealth } from './board-health';
import { Latency } from './latency';
import { type Pulse, ServerApi } from './server-api';
import { Session } from './session';

const EVERY_MS = 3_000;
const KEPT = 4;

/** How the board lives: events a second, the time from Kafka to this screen, and what was rejected. */
@Injectable({ providedIn: 'root' })
export class BoardPulse {
  private readonly session = inject(Session);
  private readonly server = inject(ServerApi);
  private readonly measured = inject(Latency);
  private readonly health = inject(BoardHealth);
  private readonly heard = signal<readonly Pulse[]>([]);
  private readonly took = signal<number | null>(null);

  readonly latest = computed(() => this.heard().at(-1) ?? null);
  readonly latency = this.took.asReadonly();
  /** Events a second, over the last beats; null until there are two of the same generation. */
  readonly rate = computed(() => {
    const [first, last] = [this.heard()[0], this.heard().at(-1)];
    if (first === undefined || last === undefined || last.time <= first.time) return null;
    return Math.max(0, ((last.events - first.events) * 1_000) / (last.time - first.time));
  });

  constructor() {
    // Rows of a build or of what was missed have waited for other reasons than their way.
    effect(() => {
      this.health.filling();
      this.measured.restart();
    });
    effect((onCleanup) => {
      if (this.session.hub() === null) return;
      untracked(() => void this.look());
      const timer = setInterval(() => {
        // Nobody looks at a tab that is hidden.
        if (document.visibilityState === 'visible') void this.look();
      }, EVERY_MS);
      onCleanup(() => {
        clearInterval(timer);
        this.heard.set([]);
      });
    });
  }

  private async look(): Promise<void> {
    const asked = Date.now();
    try {
      const pulse = await this.server.pulse();
      this.measured.heardClock(asked, pulse.time, Date.now());
      this.heard.update((before) => [
        ...before
          .filter(({ generation, events }) => generation === pulse.generation && events <= pulse.events)
          .slice(1 - KEPT),
        pulse,
      ]);
    } catch {
      // While the server is away, its last word stays; that it is away is said elsewhere.
    }
    this.took.set(this.measured.median());
  }
}
