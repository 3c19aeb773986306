import { Injectable, computed, effect, inject, signal, untracked } from '@angular/core';
import { ServerApi } from '../server-api';
import { Session } from '../session';

export type SavedKind = 'view' | 'board' | 'default';

/** Where something is kept: views have a table and a name, boards a name, defaults at most a table. */
export interface Place {
  readonly kind: SavedKind;
  readonly table: string;
  readonly name: string;
  /** For everybody, or for those who have the same key. */
  readonly shared: boolean;
}

/** What is kept on the server. */
export interface Kept extends Place {
  readonly state: unknown;
}

/** What is called by a name: the viewer's own before the shared one. */
export function effective(all: readonly Kept[], kind: SavedKind, table: string): Kept[] {
  const found = new Map<string, Kept>();
  for (const each of all) {
    if (each.kind !== kind || each.table !== table) continue;
    if (!each.shared || !found.has(each.name)) found.set(each.name, each);
  }
  return [...found.values()].sort((one, other) => one.name.localeCompare(other.name));
}

/** The name that comes first: the viewer's own choice before that for all; empty where there is none. */
export function defaultName(all: readonly Kept[], table: string): string {
  const [found] = effective(all, 'default', table);
  return typeof found?.state === 'string' ? found.state : '';
}

/** The views and boards that are kept on the server. */
@Injectable({ providedIn: 'root' })
export class SavedViews {
  private readonly session = inject(Session);
  private readonly server = inject(ServerApi);
  private readonly known = signal<readonly Kept[] | null>(null);
  private readonly trouble = signal('');

  /** Whether the server has answered, if only that it cannot tell. */
  readonly isKnown = computed(() => this.known() !== null);
  readonly all = computed(() => this.known() ?? []);
  /** Why nothing is known, in a sentence. */
  readonly problem = this.trouble.asReadonly();
  /** Only an admin's key shares; the server sees to it. */
  readonly mayShare = computed(() => this.session.hub()?.role === 'admin');

  constructor() {
    effect((onCleanup) => {
      if (this.session.hub() === null) return;
      untracked(() => void this.load());
      const look = () => {
        if (!document.hidden) void this.load();
      };
      document.addEventListener('visibilitychange', look);
      onCleanup(() => {
        document.removeEventListener('visibilitychange', look);
        this.known.set(null);
      });
    });
  }

  /** Asks the server what there is now. */
  async load(): Promise<void> {
    try {
      this.known.set(await this.server.saved());
      this.trouble.set('');
    } catch (error) {
      this.known.update((known) => known ?? []);
      this.trouble.set(error instanceof Error ? error.message : String(error));
    }
  }

  /** Keeps something; throws what the server says against it. */
  async keep(place: Place, tables: readonly string[], state: unknown): Promise<void> {
    await this.server.keep(place, tables, state);
    await this.load();
  }

  /** Removes it, and what makes it a default of the same people. */
  async remove(place: Place): Promise<void> {
    await this.server.remove(place);
    const first = this.firstOf(place);
    if (first.shared === place.shared && first.name === place.name) await this.server.remove(first.place);
    await this.load();
  }

  /** Makes it what comes first, or not any more: a shared one by an admin for all, otherwise for oneself. */
  async toggleFirst(kept: Kept): Promise<void> {
    const place = this.firstPlace(kept);
    const isFirst = this.all().some((each) => samePlace(each, place) && each.state === kept.name);
    if (isFirst) await this.server.remove(place);
    else await this.server.keep(place, [], kept.name);
    await this.load();
  }

  /** Makes one's own for everybody. */
  async share(kept: Kept, tables: readonly string[]): Promise<void> {
    await this.server.keep({ ...kept, shared: true }, tables, kept.state);
    await this.server.remove(kept);
    await this.load();
  }

  private firstPlace({ kind, table, shared }: Place): Place {
    return { kind: 'default', table: kind === 'view' ? table : '', name: '', shared: shared && this.mayShare() };
  }

  private firstOf(of: Place): { place: Place; name: unknown; shared: boolean } {
    const place = this.firstPlace(of);
    const found = this.all().find((each) => samePlace(each, place));
    return { place, name: found?.state, shared: place.shared };
  }
}

function samePlace(one: Place, other: Place): boolean {
  return one.kind === other.kind && one.table === other.table && one.name === other.name && one.shared === other.shared;
}
