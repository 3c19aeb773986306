import { Injectable, computed, effect, inject, signal, untracked } from '@angular/core';
import type { TableInfo } from 'table-hub';
import { Address } from '../views/address';
import { viewParameter } from '../live-table/view-address';
import { SavedViews, defaultName, effective } from '../views/saved-views';
import { type Card, added, cardId, checkedCards, decodeCards, defaultCards, encodeCards } from './layout';

/** The boards: which there are, which is shown, and its cards, as the address has them or as they were saved. */
@Injectable({ providedIn: 'root' })
export class Boards {
  private readonly address = inject(Address);
  private readonly saved = inject(SavedViews);

  /** The tables that the default board is made from. */
  readonly tables = signal<readonly TableInfo[]>([]);
  /** The card that was just added. */
  readonly newest = signal<string | null>(null);
  readonly list = computed(() => effective(this.saved.all(), 'board', ''));
  /** The name of the board that is shown; empty for the one of the configuration. */
  readonly name = computed(() => {
    const [first, , embedded] = this.address.path;
    const named = first === 'embed' ? embedded : this.address.read('board');
    const asked = named ?? defaultName(this.saved.all(), '');
    return this.list().some(({ name }) => name === asked) ? asked : '';
  });
  /** Whether it is known what to show: that needs the server, unless the address says all. */
  readonly isKnown = computed(() => this.saved.isKnown() || this.address.read('cards') !== null);

  private readonly base = computed(() => {
    const found = this.list().find(({ name }) => name === this.name());
    return found ? checkedCards(found.state) : defaultCards(this.tables());
  });
  readonly cards = computed(
    (): readonly Card[] => {
      const text = this.address.read('cards');
      return text === null ? this.base() : decodeCards(text);
    },
    { equal: (one, other) => encodeCards(one) === encodeCards(other) },
  );
  readonly isChanged = computed(() => encodeCards(this.cards()) !== encodeCards(this.base()));

  constructor() {
    effect(() => {
      const asked = this.address.read('add');
      if (asked === null || !this.isKnown() || this.tables().length === 0) return;
      untracked(() => {
        for (const card of decodeCards(asked)) this.add(card);
        this.address.write('add', '');
      });
    });
    // A board opens with the views that its tables were saved with, unless the address has others.
    effect(() => {
      this.name();
      if (!this.isKnown()) return;
      untracked(() => {
        for (const { table, view } of this.cards()) {
          const parameter = viewParameter(table);
          if (view && this.address.read(parameter) === null) this.address.write(parameter, view);
        }
      });
    });
  }

  /** Shows other cards from now on; the address has them. */
  change(cards: readonly Card[]): void {
    const text = encodeCards(cards);
    this.address.write('cards', text === encodeCards(this.base()) ? '' : text);
  }

  /** Shows one more card; the eye is led to it. */
  add(card: Card): void {
    this.change(added(this.cards(), card));
    this.newest.set(cardId(card));
  }

  /** Back to the cards as they were saved. */
  discard(): void {
    this.address.write('cards', '');
  }

  /** The cards as they are to be saved: with the views that the tables have now. */
  state(): Card[] {
    return this.cards().map((card) =>
      card.kind === 'table' ? { ...card, view: this.address.read(viewParameter(card.table)) ?? '' } : card,
    );
  }
}
