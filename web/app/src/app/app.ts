import { Component, computed, effect, inject, signal, untracked } from '@angular/core';
import { NavigationEnd, Router, RouterLink, RouterOutlet } from '@angular/router';
import type { HubState } from 'table-hub';
import { Alerts } from './alerts';
import { rejectedText } from './board/board-texts';
import { BoardHealth, type BoardState } from './board-health';
import { BoardPulse } from './board-pulse';
import { COUNT } from './count';
import { EMBEDDED } from './embedded';
import { Login } from './login/login';
import { ALERTS_TABLE } from './own-tables';
import { RowDetail } from './row-detail/row-detail';
import { RowDetails } from './row-detail/row-details';
import { Session } from './session';
import { ThemeChoice } from './theme';

const NOT_READY: Record<Exclude<HubState, 'ready'>, string> = {
  idle: 'not connected',
  connecting: 'connecting…',
  waiting: 'connection lost, trying again',
  unauthorized: 'the key is not right any more',
  closed: 'not connected',
};
const NO_BOARD: BoardState = {
  kind: 'busy',
  text: 'no board yet',
  detail:
    'The server is there, but nobody keeps a board in its Kafka: `liveboard pipeline` or `liveboard up` starts it.',
};

@Component({
  selector: 'app-root',
  imports: [Login, RouterLink, RouterOutlet, RowDetail],
  templateUrl: './app.html',
  styleUrl: './app.css',
})
export class App {
  protected readonly session = inject(Session);
  protected readonly themeChoice = inject(ThemeChoice);
  protected readonly details = inject(RowDetails);
  protected readonly isEmbedded = inject(EMBEDDED);
  protected readonly alerts = inject(Alerts);
  private readonly health = inject(BoardHealth);
  private readonly pulse = inject(BoardPulse);

  protected readonly resuming = signal(true);
  /** The connection, or else what the board does. */
  private readonly running = computed((): BoardState => {
    const hub = this.session.state();
    if (hub !== 'ready') return { kind: 'busy', text: NOT_READY[hub], detail: '' };
    const state = this.health.state();
    // Keys that are not shown the status are told of a live generation all the same.
    if (state === null && this.pulse.latest()?.generation === null) return NO_BOARD;
    return state ?? { kind: 'good', text: 'connected', detail: '' };
  });
  /** With the sources whose records are rejected, about which their cards have a whole sentence. */
  protected readonly state = computed((): BoardState => {
    const state = this.running();
    const rejected = (this.pulse.latest()?.sources ?? []).filter((source) => rejectedText(source) !== null);
    if (state.kind !== 'good' || rejected.length === 0) return state;
    const names = rejected.map(({ source }) => source).join(', ');
    return { kind: 'busy', text: `${state.text}, ${names} rejected`, detail: '' };
  });
  protected readonly rate = computed(() => {
    const rate = this.pulse.rate();
    return rate === null ? null : COUNT.format(rate < 10 ? Math.round(rate * 10) / 10 : Math.round(rate));
  });
  protected readonly alertsTable = ALERTS_TABLE;
  protected readonly alertsText = computed(() => {
    const total = this.alerts.total() ?? 0;
    return total === 0 ? 'no alerts' : `${COUNT.format(total)} ${total === 1 ? 'alert' : 'alerts'}`;
  });
  protected readonly alertsTitle = computed(() =>
    this.alerts.total() ? 'Rows for which an alert is raised now: show them' : 'No alert is raised now',
  );
  protected readonly latency = computed(() => {
    const took = this.pulse.latency();
    if (took === null || this.running().kind !== 'good') return null;
    if (took < 1) return 'under 1 ms';
    return took < 1_000 ? `${took.toFixed(0)} ms` : `${(took / 1_000).toFixed(1)} s`;
  });

  constructor() {
    void this.resume();
    const router = inject(Router);
    let page = '';
    router.events.subscribe((event) => {
      if (!(event instanceof NavigationEnd)) return;
      const path = event.urlAfterRedirects.replace(/[?#].*$/, '');
      if (path !== page) this.details.close();
      page = path;
    });
    effect(() => {
      if (this.session.hub() === null)
        untracked(() => {
          this.details.close();
        });
    });
  }

  private async resume(): Promise<void> {
    await this.session.resume();
    this.resuming.set(false);
  }
}
