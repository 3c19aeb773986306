import { Injectable, OnDestroy, signal } from '@angular/core';

/** The time, for what shows how old something is; one timer for all. */
@Injectable({ providedIn: 'root' })
export class Clock implements OnDestroy {
  private readonly time = signal(Date.now());
  private readonly timer = setInterval(() => {
    this.time.set(Date.now());
  }, 1_000);

  readonly now = this.time.asReadonly();

  ngOnDestroy(): void {
    clearInterval(this.timer);
  }
}
