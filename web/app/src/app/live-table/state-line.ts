import { Component, computed, inject, input } from '@angular/core';
import type { TableUpdate } from 'table-hub';
import { BoardHealth, type StandStill } from '../board-health';
import { Clock } from './clock';
import type { Tempo } from './tempo';
import { clockTime, duration } from './values';

type Kind = 'connecting' | 'building' | 'live' | 'stale' | 'error';

/** Whether a table is live, how fast it changes and how old its newest row is. */
@Component({
  selector: 'app-state-line',
  template: `
    <span class="state" role="status" [class]="kind()" [title]="stale()?.reason ?? ''">{{ text() }}</span>
    @if (kind() === 'live') {
      <span class="tempo">{{ tempoText() }}</span>
    }
  `,
  styleUrl: './state-line.css',
})
export class StateLine {
  readonly update = input.required<TableUpdate | null>();
  readonly tempo = input.required<Tempo>();
  /** Whether there is a newest row: those of a view stand where its statement puts them. */
  readonly isInTime = input.required<boolean>();

  private readonly clock = inject(Clock);
  private readonly health = inject(BoardHealth);

  /** The connection, or else the pipeline; tables that belong to no generation are not the pipeline's. */
  protected readonly stale = computed((): StandStill | null => {
    const update = this.update();
    if (update === null) return null;
    if (update.staleSince !== null) return { since: update.staleSince, reason: update.problem ?? '' };
    return update.generation === null ? null : this.health.standStill();
  });

  protected readonly kind = computed((): Kind => {
    const update = this.update();
    if (update === null) return 'connecting';
    if (this.stale() === null) return update.generation !== null && this.health.filling() ? 'building' : 'live';
    return update.columns.length ? 'stale' : 'error';
  });

  protected readonly text = computed(() => {
    switch (this.kind()) {
      case 'connecting':
        return 'Connecting…';
      case 'building':
        return this.health.filling();
      case 'live':
        return 'live';
      case 'stale':
        return `stale since ${clockTime(this.stale()?.since ?? new Date())}`;
      case 'error':
        return this.stale()?.reason ?? '';
    }
  });

  protected readonly tempoText = computed(() => {
    const now = Math.max(this.clock.now(), Date.now());
    const age = this.isInTime() ? this.tempo().age(now) : null;
    const rate = this.tempo().rate(now);
    const shownRate = rate >= 10 || rate === 0 ? rate.toFixed(0) : rate.toFixed(1);
    return `${shownRate} rows/s${age === null ? '' : `, newest row ${duration(age)} old`}`;
  });
}
