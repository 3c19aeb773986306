import { NgTemplateOutlet } from '@angular/common';
import { Component, ElementRef, afterRenderEffect, computed, effect, inject, input, signal } from '@angular/core';
import { Router, RouterLink } from '@angular/router';
import type { TableInfo } from 'table-hub';
import { EMBEDDED } from '../embedded';
import { LiveTable } from '../live-table/live-table';
import { SavedMenu } from '../views/saved-menu';
import type { Kept } from '../views/saved-views';
import { BehindNote } from './behind-note';
import { Boards } from './boards';
import { CardEditor } from './card-editor';
import { ChartCard } from './chart-card';
import { GroupsCard } from './groups-card';
import { type Card, cardId, cardTitle, movedCard, resized, WIDEST } from './layout';
import { NumberCard } from './number-card';
import { RejectedNote } from './rejected-note';

interface Resizing {
  readonly id: string;
  readonly from: Card;
  readonly x: number;
  readonly y: number;
  /** Pixels of one step. */
  readonly stepX: number;
  readonly stepY: number;
}

/** The cards of a board, which people arrange as they like, and the tabs of all boards. */
@Component({
  selector: 'app-card-board',
  imports: [
    BehindNote,
    CardEditor,
    ChartCard,
    GroupsCard,
    LiveTable,
    NgTemplateOutlet,
    NumberCard,
    RejectedNote,
    RouterLink,
    SavedMenu,
  ],
  templateUrl: './card-board.html',
  styleUrl: './card-board.css',
})
export class CardBoard {
  /** The tables of the board, in its order. */
  readonly tables = input.required<readonly TableInfo[]>();
  /** Whether the board is only looked at. */
  protected readonly isFixed = inject(EMBEDDED);

  private readonly host = inject<ElementRef<HTMLElement>>(ElementRef);
  private readonly router = inject(Router);
  protected readonly boards = inject(Boards);
  protected readonly dragged = signal<string | null>(null);
  protected readonly target = signal<string | null>(null);
  /** The card that is being edited; an empty text for a new one. */
  protected readonly edited = signal<string | null>(null);
  protected readonly said = signal('');
  private resizing: Resizing | null = null;

  protected readonly cards = computed(() =>
    this.boards.cards().map((card) => ({ card, id: cardId(card), title: cardTitle(card, this.tables()) })),
  );
  protected readonly editedCard = computed(() => this.cards().find(({ id }) => id === this.edited())?.card ?? null);
  protected readonly state = () => this.boards.state();
  protected readonly shownTables = computed(() => [...new Set(this.boards.cards().map(({ table }) => table))]);

  constructor() {
    effect(() => {
      this.boards.tables.set(this.tables());
    });
    afterRenderEffect(() => {
      const newest = this.boards.newest();
      const place = this.cards().findIndex(({ id }) => id === newest);
      if (place < 0) return;
      this.host.nativeElement.querySelectorAll('.card')[place]?.scrollIntoView({ block: 'nearest' });
      this.boards.newest.set(null);
    });
  }

  /** On screens half as wide. */
  protected twice(width: number): number {
    return Math.min(WIDEST, 2 * width);
  }

  protected menuId(id: string): string {
    return `card-menu-${this.cards().findIndex((each) => each.id === id)}`;
  }

  protected open(kept: Kept | null): void {
    this.show(kept?.name ?? '');
  }

  /** Leaves the cards of the address behind: they are those of the board now. */
  protected show(name: string): void {
    void this.router.navigate(['/'], { queryParams: { board: name } });
  }

  protected done(card: Card): void {
    const place = this.cards().findIndex(({ id }) => id === this.edited());
    if (place < 0) this.boards.add(card);
    else this.boards.change(this.boards.cards().with(place, card));
    this.edited.set(null);
  }

  protected remove(id: string): void {
    this.boards.change(this.boards.cards().filter((card) => cardId(card) !== id));
  }

  protected resize(id: string, wider: number, higher: number): void {
    const card = this.boards.cards().find((each) => cardId(each) === id);
    if (card === undefined) return;
    const { width, height } = resized(card, card.width + wider, card.height + higher);
    this.setSize(id, width, height);
    this.said.set(`${cardTitle(card)}: ${width} of 12 wide, ${height} high`);
  }

  /** With pointers of every kind: a browser's own dragging does not work with a finger everywhere. */
  protected grab({ button, currentTarget, pointerId }: PointerEvent, id: string): void {
    if (button !== 0 || !(currentTarget instanceof HTMLElement)) return;
    currentTarget.setPointerCapture(pointerId);
    this.dragged.set(id);
  }

  protected drag({ clientX, clientY }: PointerEvent): void {
    if (this.dragged() === null) return;
    const card = document.elementFromPoint(clientX, clientY)?.closest<HTMLElement>('[data-card]');
    const id = card?.dataset.card ?? null;
    this.target.set(id === this.dragged() ? null : id);
  }

  protected drop(): void {
    const ids = this.cards().map(({ id }) => id);
    const [dragged, target] = [this.dragged(), this.target()];
    if (dragged !== null && target !== null) this.move(ids.indexOf(dragged), ids.indexOf(target));
    this.letGo();
  }

  protected letGo(): void {
    this.dragged.set(null);
    this.target.set(null);
  }

  protected press(event: KeyboardEvent, id: string): void {
    const step = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const handle = event.currentTarget;
    const place = this.cards().findIndex((each) => each.id === id);
    this.move(place, Math.max(0, place + step));
    // Moving an element takes its focus away.
    setTimeout(() => {
      if (handle instanceof HTMLElement) handle.focus();
    });
  }

  protected grip({ button, currentTarget, pointerId, clientX, clientY }: PointerEvent, id: string, from: Card): void {
    if (button !== 0 || !(currentTarget instanceof HTMLElement)) return;
    const box = currentTarget.closest('.card')?.getBoundingClientRect();
    if (box === undefined) return;
    currentTarget.setPointerCapture(pointerId);
    this.resizing = {
      id,
      from,
      x: clientX,
      y: clientY,
      stepX: box.width / from.width,
      stepY: box.height / from.height,
    };
  }

  protected pull({ clientX, clientY }: PointerEvent): void {
    if (this.resizing === null) return;
    const { id, from, x, y, stepX, stepY } = this.resizing;
    const { width, height } = resized(from, from.width + (clientX - x) / stepX, from.height + (clientY - y) / stepY);
    this.setSize(id, width, height);
  }

  protected release(): void {
    this.resizing = null;
  }

  private setSize(id: string, width: number, height: number): void {
    this.boards.change(this.boards.cards().map((card) => (cardId(card) === id ? { ...card, width, height } : card)));
  }

  private move(from: number, to: number): void {
    this.boards.change(movedCard(this.boards.cards(), from, to));
    const { title } = this.cards()[to] ?? {};
    if (title !== undefined) this.said.set(`${title} is card ${to + 1} of ${this.cards().length}`);
  }
}
