import { Component, computed, effect, inject, linkedSignal, signal, untracked } from '@angular/core';
import { RouterLink } from '@angular/router';
import type { Subscription } from 'table-hub';
import { ControlPanel } from '../control-panel/control-panel';
import { LiveTable } from '../live-table/live-table';
import { LiveTableService } from '../live-table.service';
import { ServerApi } from '../server-api';
import { Session } from '../session';
import { arranged, moved, storedOrder, storeOrder } from './card-order';

const STATUS_TABLE = 'orchestrator_status';
const REJECTS_TABLE = 'rejects_ui';
const APART = new Set([STATUS_TABLE, REJECTS_TABLE, 'control_raw']);
const LOOK_AGAIN_MS = 500;
const COUNT = new Intl.NumberFormat('en-US');

/** All tables of the board, a card for each, in the order that the viewer likes. */
@Component({
  selector: 'app-board',
  imports: [ControlPanel, LiveTable, RouterLink],
  templateUrl: './board.html',
  styleUrl: './board.css',
})
export class Board {
  private readonly session = inject(Session);
  private readonly tables = inject(LiveTableService);
  private readonly server = inject(ServerApi);
  private readonly names = signal<readonly string[]>([], { equal: (one, other) => one.join() === other.join() });

  protected readonly rejects = signal<number | null>(null);
  protected readonly rejectsText = computed(() => COUNT.format(this.rejects() ?? 0));
  protected readonly cards = linkedSignal(() =>
    arranged(
      this.names().filter((name) => !APART.has(name)),
      storedOrder(),
    ),
  );
  private lookAgain: ReturnType<typeof setTimeout> | undefined;
  protected readonly dragged = signal<string | null>(null);
  protected readonly target = signal<string | null>(null);

  constructor() {
    effect((onCleanup) => {
      const hub = this.session.hub();
      if (hub === null) return;
      untracked(() => {
        this.names.set(hub.tables.map(({ name }) => name));
      });
      const subscriptions = untracked(() => this.watch());
      onCleanup(() => {
        clearTimeout(this.lookAgain);
        this.lookAgain = undefined;
        for (const subscription of subscriptions) subscription.unsubscribe();
      });
    });
  }

  /** With pointers of every kind: a browser's own dragging does not work with a finger everywhere. */
  protected grab({ button, currentTarget, pointerId }: PointerEvent, name: string): void {
    if (button !== 0 || !(currentTarget instanceof HTMLElement)) return;
    currentTarget.setPointerCapture(pointerId);
    this.dragged.set(name);
  }

  protected drag({ clientX, clientY }: PointerEvent): void {
    if (this.dragged() === null) return;
    const card = document.elementFromPoint(clientX, clientY)?.closest<HTMLElement>('[data-card]');
    const name = card?.dataset.card ?? null;
    this.target.set(name === this.dragged() ? null : name);
  }

  protected drop(): void {
    const [dragged, target] = [this.dragged(), this.target()];
    if (dragged !== null && target !== null) this.move(dragged, this.cards().indexOf(target));
    this.letGo();
  }

  protected letGo(): void {
    this.dragged.set(null);
    this.target.set(null);
  }

  protected press(event: KeyboardEvent, name: string): void {
    const step = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const handle = event.currentTarget;
    this.move(name, Math.max(0, this.cards().indexOf(name) + step));
    // Moving an element takes its focus away.
    setTimeout(() => {
      if (handle instanceof HTMLElement) handle.focus();
    });
  }

  private move(name: string, place: number): void {
    this.cards.update((cards) => moved(cards, name, place));
    storeOrder(this.cards());
  }

  private watch(): Subscription[] {
    return [
      // Whatever changes the tables of the board shows in its status.
      this.tables.subscribe(STATUS_TABLE, () => void this.look(), { size: 1 }),
      this.tables.subscribe(
        REJECTS_TABLE,
        ({ columns, total }) => {
          if (columns.length) this.rejects.set(total);
        },
        { size: 1 },
      ),
    ];
  }

  private async look(): Promise<void> {
    clearTimeout(this.lookAgain);
    // The status can be known a moment before the first tables are loaded, and then nothing more comes of it.
    const timer = setTimeout(() => void this.look(), LOOK_AGAIN_MS);
    this.lookAgain = timer;
    try {
      this.names.set((await this.server.tables()).map(({ name }) => name));
      if (this.cards().length > 0) clearTimeout(timer);
    } catch {
      // While the server is away, the cards stay as they are.
      clearTimeout(timer);
    }
  }
}
