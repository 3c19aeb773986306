import { Component, computed, inject, signal } from '@angular/core';
import { RouterLink, RouterOutlet } from '@angular/router';
import type { HubState } from 'table-hub';
import { Login } from './login/login';
import { Session } from './session';
import { ThemeChoice } from './theme';

const STATE_TEXTS: Record<HubState, string> = {
  idle: 'not connected',
  connecting: 'connecting…',
  ready: 'connected',
  waiting: 'connection lost, trying again',
  unauthorized: 'the key is not right any more',
  closed: 'not connected',
};

@Component({
  selector: 'app-root',
  imports: [Login, RouterLink, RouterOutlet],
  templateUrl: './app.html',
  styleUrl: './app.css',
})
export class App {
  protected readonly session = inject(Session);
  protected readonly themeChoice = inject(ThemeChoice);
  protected readonly resuming = signal(true);
  protected readonly stateText = computed(() => STATE_TEXTS[this.session.state()]);

  constructor() {
    void this.resume();
  }

  private async resume(): Promise<void> {
    await this.session.resume();
    this.resuming.set(false);
  }
}
