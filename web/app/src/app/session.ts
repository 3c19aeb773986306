import { computed, inject, Injectable, signal } from '@angular/core';
import { TableHub, Unauthorized, Unreachable, type HubState } from 'table-hub';
import { SERVER_ADDRESS } from './server-address';

const STORED_KEY = 'liveboard.key';
const CHANGED_KEY = 'The key has changed: log in with the new one.';
const USED_LINK = 'This login link has been used or is too old: log in with the key.';
const RETRY_MS = 2_000;
const LOGIN_LINK = /^#login=(.+)$/;

/** Who is looking: the key, for as long as the browser's tab lasts, and the connection that it opens. */
@Injectable({ providedIn: 'root' })
export class Session {
  private readonly server = inject(SERVER_ADDRESS);
  private readonly opened = signal<{ key: string; hub: TableHub } | null>(null);
  private readonly hubState = signal<HubState>('idle');

  readonly hub = computed(() => this.opened()?.hub ?? null);
  readonly key = computed(() => this.opened()?.key ?? null);
  readonly state = this.hubState.asReadonly();

  /** Why the viewer has to log in again, if not for the first time. */
  readonly refusal = signal<string | null>(null);

  /** Logs in with what the address or this tab's storage has. */
  async resume(): Promise<void> {
    const token = takeLoginToken();
    const key = token === null ? sessionStorage.getItem(STORED_KEY) : await this.exchanged(token);
    if (key === null && token !== null) this.refusal.set(USED_LINK);
    if (key !== null && !(await this.openPatiently(key))) this.refusal.set(CHANGED_KEY);
  }

  /** Whether the server takes the key; throws an Unreachable if it does not answer. */
  async open(key: string): Promise<boolean> {
    const hub = new TableHub({ url: this.server, psk: key });
    hub.onState((state) => {
      if (this.hub() === hub || this.hub() === null) this.hubState.set(state);
      if (state === 'unauthorized' && this.hub() === hub) {
        this.close();
        this.refusal.set(CHANGED_KEY);
      }
    });
    try {
      await hub.connect();
    } catch (error) {
      hub.close();
      if (error instanceof Unauthorized) return false;
      throw error;
    }
    this.opened()?.hub.close();
    sessionStorage.setItem(STORED_KEY, key);
    this.hubState.set(hub.state);
    this.opened.set({ key, hub });
    return true;
  }

  /** Logs out. */
  close(): void {
    this.refusal.set(null);
    sessionStorage.removeItem(STORED_KEY);
    const hub = this.hub();
    this.opened.set(null);
    hub?.close();
  }

  private async openPatiently(key: string): Promise<boolean> {
    for (;;) {
      try {
        return await this.open(key);
      } catch (error) {
        if (!(error instanceof Unreachable)) throw error;
        this.hubState.set('waiting');
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
      }
    }
  }

  private async exchanged(token: string): Promise<string | null> {
    const body = JSON.stringify({ token });
    const response = await fetch(new URL('api/login', this.server), { method: 'POST', body }).catch(() => null);
    return response?.ok ? ((await response.json()) as { key: string }).key : null;
  }
}

/** The token leaves the address at once, so that no history and no bookmark keeps it. */
function takeLoginToken(): string | null {
  const token = LOGIN_LINK.exec(location.hash)?.[1] ?? null;
  if (token !== null) history.replaceState(history.state, '', location.pathname + location.search);
  return token;
}
