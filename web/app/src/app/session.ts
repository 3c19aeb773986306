import { computed, inject, Injectable, signal } from '@angular/core';
import { TableHub, Unauthorized, Unreachable, type HubState } from 'table-hub';
import { SERVER_ADDRESS } from './server-address';
import { keep, kept } from './storage';
import { Tabs } from './tabs';

const STORED_KEY = 'liveboard.key';
const CHANGED_KEY = 'The key has changed: log in with the new one.';
const USED_LINK = 'This login link has been used or is too old: log in with the key.';
const RETRY_MS = 2_000;
const LOGIN_LINK = /^#login=(.+)$/;
const EMBEDDED_KEY = /^#key=(.+)$/;

/** Who is looking: the key, for as long as a tab of this browser has it, and the connection that it opens. */
@Injectable({ providedIn: 'root' })
export class Session {
  private readonly server = inject(SERVER_ADDRESS);
  private readonly opened = signal<{ key: string; hub: TableHub } | null>(null);
  private readonly hubState = signal<HubState>('idle');
  private isResuming = false;
  private readonly tabs = new Tabs(
    () => this.key(),
    (key) => {
      this.follow(key);
    },
  );

  readonly hub = computed(() => this.opened()?.hub ?? null);
  readonly key = computed(() => this.opened()?.key ?? null);
  readonly state = this.hubState.asReadonly();

  /** Why the viewer has to log in again, if not for the first time. */
  readonly refusal = signal<string | null>(null);

  constructor() {
    // A login link that is pasted into a tab that is open does not load the page anew. The router hears of it next.
    window.addEventListener('popstate', () => {
      if (LOGIN_LINK.test(location.hash) || isKeyGiven()) void this.resume();
    });
  }

  /** Logs in with what the address, this tab's storage or another tab has. */
  async resume(): Promise<void> {
    this.isResuming = true;
    try {
      await this.resumeWithKey();
    } finally {
      this.isResuming = false;
    }
  }

  private async resumeWithKey(): Promise<void> {
    const token = taken(LOGIN_LINK);
    const given = isKeyGiven() ? taken(EMBEDDED_KEY) : null;
    const key =
      token === null
        ? (given ?? kept('sessionStorage', STORED_KEY) ?? (await this.tabs.ask()))
        : await this.exchanged(token);
    if (key === null && token !== null) {
      this.close();
      this.refusal.set(USED_LINK);
    }
    if (key !== null && key !== this.key() && !(await this.openPatiently(key))) this.refusal.set(CHANGED_KEY);
    else if (key !== null && token !== null) this.tabs.tell(key);
  }

  /** Whether the server takes the key; throws an Unreachable if it does not answer. */
  async open(key: string): Promise<boolean> {
    const hub = new TableHub({ url: this.server, psk: key });
    hub.onState((state) => {
      if (this.hub() === hub || this.hub() === null) this.hubState.set(state);
      if (state === 'unauthorized' && this.hub() === hub) {
        this.end();
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
    keep('sessionStorage', STORED_KEY, key);
    this.refusal.set(null);
    this.hubState.set(hub.state);
    this.opened.set({ key, hub });
    return true;
  }

  /** Logs in with a key that was typed, in all tabs that wait for one. */
  async login(key: string): Promise<boolean> {
    const isOpen = await this.open(key);
    if (isOpen) this.tabs.tell(key);
    return isOpen;
  }

  /** Logs out, in all tabs of this browser. */
  close(): void {
    this.end();
    this.tabs.tell(null);
  }

  private end(): void {
    this.refusal.set(null);
    keep('sessionStorage', STORED_KEY, null);
    const hub = this.hub();
    this.opened.set(null);
    hub?.close();
  }

  /** Another tab has logged in or out. One that looks with a key of its own goes on with it. */
  private follow(key: string | null): void {
    if (key === null) this.end();
    else if (this.hub() === null && !this.isResuming) void this.open(key).catch(() => false);
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

/** Whether the address has a key: only that of a frame may, which the site around it has made. */
function isKeyGiven(): boolean {
  return location.pathname.startsWith('/embed/') && EMBEDDED_KEY.test(location.hash);
}

/** What logs in leaves the address at once, so that no history and no bookmark keeps it. */
function taken(pattern: RegExp): string | null {
  const found = pattern.exec(location.hash)?.[1] ?? null;
  if (found === null) return null;
  history.replaceState(history.state, '', location.pathname + location.search);
  return decodeURIComponent(found);
}
