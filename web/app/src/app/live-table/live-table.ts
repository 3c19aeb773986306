import {
  Component,
  DestroyRef,
  ElementRef,
  afterNextRender,
  computed,
  effect,
  inject,
  input,
  signal,
  untracked,
  viewChild,
} from '@angular/core';
import type { Order, Subscription, TableUpdate } from 'table-hub';
import { Alerts } from '../alerts';
import { Catalogue } from '../catalogue';
import { LiveTableService } from '../live-table.service';
import { RowDetails } from '../row-detail/row-details';
import { ServerApi, type ExportFormat } from '../server-api';
import { Session } from '../session';
import { Clock } from './clock';
import { sameColumns } from './columns';
import { Pace } from './pace';
import { type Turn, PageTurner } from './page-turner';
import { type Place, heldText, lastPage, rangeText, shownAt, windowOf } from './paging';
import { Sheet } from './sheet';
import { StateLine } from './state-line';
import { TablePager } from './table-pager';
import { TableTools } from './table-tools';
import { Takeout } from './takeout';
import { Tempo } from './tempo';
import { sought } from './values';
import { ViewAddress } from './view-address';
import { PLAIN_VIEW, type ViewState, decodeView, encodeView } from './view-state';

const SEARCH_AFTER_MS = 250;
/** Nobody reads faster, and most of what a change costs is showing it. */
const SHOW_EVERY_MS = 100;
const WALKING_KEYS = new Set(['ArrowDown', 'ArrowUp', 'PageDown', 'PageUp', 'Home', 'End']);

/** A page of a live table; sorting, filters and the search are the server's, over the whole table. */
@Component({
  selector: 'app-live-table',
  imports: [StateLine, TablePager, TableTools],
  templateUrl: './live-table.html',
  styleUrl: './live-table.css',
  host: { class: 'framed' },
})
export class LiveTable {
  readonly tableName = input.required<string>();
  readonly pageSize = input(300);

  private readonly alerts = inject(Alerts);
  private readonly catalogue = inject(Catalogue);
  private readonly tables = inject(LiveTableService);
  private readonly session = inject(Session);
  private readonly address = inject(ViewAddress);
  private readonly clock = inject(Clock);
  private readonly details = inject(RowDetails);
  private readonly place = viewChild.required<ElementRef<HTMLElement>>('grid');
  private sheet: Sheet | null = null;
  private subscription: Subscription | null = null;
  private scrollAfterTurn: Turn | null = null;
  /** The column in which the keyboard goes on after it has turned the page. */
  private focusAfterTurn: string | null = null;
  private searching: ReturnType<typeof setTimeout> | undefined;
  private isScrolled = false;
  /** The view as the address was last seen or told to have it: a view that changed since is not news from the address. */
  private addressed = '';
  /** How many rows the table had when the viewer held the newest ones in order to read; null while they slide in. */
  private readonly heldAt = signal<number | null>(null);

  protected readonly pageTurner = new PageTurner(
    () => this.sheet?.ends ?? null,
    (turn) => {
      // Until the rows of the page before this turn are there, the end is still that of another.
      if (this.scrollAfterTurn === null) this.turn(turn);
    },
  );
  protected readonly tempo = new Tempo();
  private readonly pace = new Pace<TableUpdate>(SHOW_EVERY_MS, (update) => {
    this.take(update);
  });
  protected readonly update = signal<TableUpdate | null>(null);
  protected readonly view = signal<ViewState>(PLAIN_VIEW);
  protected readonly takeout = new Takeout(inject(ServerApi));

  protected readonly columns = computed(() => this.update()?.columns ?? [], { equal: sameColumns });
  protected readonly query = computed(
    () => {
      const { sort, filter, search } = this.view();
      return { sort, filter, search: sought(search) };
    },
    { equal: (one, other) => JSON.stringify(one) === JSON.stringify(other) },
  );
  protected readonly isSorted = computed(() => this.view().sort.length > 0);
  /** Without a time there is no newest row. */
  protected readonly hasNewest = computed(
    () => this.columns().length === 0 || this.catalogue.isInTime(this.tableName(), this.columns()),
  );
  /** Sorted rows are in no order of arrival, whichever end comes first. */
  protected readonly order = computed((): Order =>
    this.isSorted() || !this.hasNewest() ? 'arrival' : this.view().order,
  );
  protected readonly offset = computed(() => this.view().offset);
  protected readonly total = computed(() => this.heldAt() ?? this.update()?.total ?? 0);
  protected readonly hasPrevious = computed(() => this.offset() > 0);
  protected readonly hasNext = computed(() => this.offset() + this.pageSize() < this.total());
  protected readonly isNarrowed = computed(() => this.query().filter.length > 0 || this.query().search !== '');
  protected readonly isHeld = computed(() => this.heldAt() !== null);
  protected readonly heldText = computed(() => heldText((this.update()?.total ?? 0) - (this.heldAt() ?? 0)));
  protected readonly isEmpty = computed(() => this.columns().length > 0 && this.update()?.rows.length === 0);
  protected readonly range = computed(() => {
    const update = this.update();
    if (update === null || update.columns.length === 0) return '';
    if (this.isEmpty()) return this.isNarrowed() ? 'no rows match' : 'no rows yet';
    return rangeText(shownAt(update, this.where()), this.total());
  });

  private readonly where = computed((): Place => ({
    order: this.order(),
    offset: this.offset(),
    size: this.pageSize(),
    heldAt: this.heldAt(),
  }));

  constructor() {
    const destroyed = inject(DestroyRef);
    afterNextRender(() => {
      const sheet = (this.sheet = this.makeSheet());
      sheet.setView(this.view());
      sheet.mark(this.alerts.of(this.tableName()));
      const update = this.update();
      if (update !== null) this.showRows(update);
      destroyed.onDestroy(() => {
        this.sheet = null;
        sheet.destroy();
      });
    });
    // What the address says, now and after Back.
    effect(() => {
      const text = this.address.read(this.tableName());
      untracked(() => {
        if (text === this.addressed) return;
        this.addressed = text;
        if (text !== encodeView(this.view())) this.restore(decodeView(text));
      });
    });
    effect(() => {
      const text = encodeView(this.view());
      untracked(() => {
        this.addressed = text;
        this.address.write(this.tableName(), text);
      });
    });
    effect((onCleanup) => {
      const hub = this.session.hub();
      const table = this.tableName();
      if (hub === null) return;
      untracked(() => {
        this.attach(table);
      });
      onCleanup(() => {
        this.subscription?.unsubscribe();
        this.pace.restart();
      });
    });
    effect(() => {
      this.where();
      this.query();
      untracked(() => {
        this.move();
      });
    });
    effect(() => {
      const raised = this.alerts.of(this.tableName());
      untracked(() => this.sheet?.mark(raised));
    });
    effect(() => {
      this.clock.now();
      untracked(() => this.sheet?.tick());
    });
  }

  /** Goes to the page that begins with this row. */
  protected goTo(offset: number, turn: Turn = 'next'): void {
    this.scrollAfterTurn = turn;
    this.turnTo(Math.max(0, offset));
  }

  protected toggleOrder(): void {
    this.heldAt.set(null);
    this.scrollAfterTurn = 'next';
    this.change({ order: this.view().order === 'newest' ? 'arrival' : 'newest', offset: 0 });
  }

  protected refresh(): void {
    this.subscription?.unsubscribe();
    this.attach(this.tableName());
  }

  protected search(text: string): void {
    clearTimeout(this.searching);
    this.searching = setTimeout(() => {
      this.ask({ search: text });
    }, SEARCH_AFTER_MS);
  }

  /** Shows the same rows in another way. */
  protected arrange(changed: Partial<ViewState>): void {
    this.change(changed);
    this.sheet?.setView(this.view());
  }

  /** Another view; the plain one takes away all that was set up. */
  protected restore(view = PLAIN_VIEW): void {
    this.heldAt.set(null);
    this.tempo.restart();
    this.view.set(view);
    this.sheet?.setView(view);
  }

  protected async export(format: ExportFormat): Promise<void> {
    await this.takeout.export(this.tableName(), format, this.query());
  }

  /** Copies the selected rows, or all of the page. */
  protected async copy(): Promise<void> {
    const update = this.update();
    if (update && this.sheet) await this.takeout.copyRows(this.sheet, shownAt(update, this.where()));
  }

  /** A row that is pressed stays under the pointer, so that the click is on it. */
  protected pointed({ target }: PointerEvent): void {
    if (target instanceof Element && target.closest('.ag-row')) this.hold();
  }

  private makeSheet(): Sheet {
    return new Sheet(this.place().nativeElement, {
      sorted: (sort) => {
        this.ask({ sort });
      },
      filtered: (filter) => {
        this.ask({ filter });
      },
      arranged: (arranged) => {
        this.arrange(arranged);
      },
      scrolled: (isAtTop) => {
        // Who comes back to the top reads no more; a grid that is filled anew also tells that it is there.
        if (isAtTop && this.isScrolled && this.offset() === 0) this.heldAt.set(null);
        else if (!isAtTop) this.hold();
        this.isScrolled = !isAtTop;
      },
      clicked: (key, event) => {
        this.details.clicked(this.tableName(), key, event);
      },
      pressed: (event, key, row, isLast) => {
        this.details.pressed(this.tableName(), key, event);
        this.pressed(event, row, isLast);
      },
    });
  }

  private attach(table: string): void {
    const { order, offset, size } = windowOf(this.where());
    this.tempo.restart();
    this.pace.restart();
    this.subscription = this.tables.subscribe(
      table,
      (update) => {
        this.tempo.take(update, Date.now());
        this.pace.take(update);
      },
      { order, offset, size, ...this.query() },
    );
  }

  private move(): void {
    const { order, offset, size } = windowOf(this.where());
    this.subscription?.setWindow(offset, size, { order, ...this.query() });
  }

  private take(update: TableUpdate): void {
    const before = this.update();
    this.update.set(update);
    const held = this.heldAt();
    if (held !== null && (before?.generation !== update.generation || update.total < held)) {
      // Other rows than those that were held: the page is found anew.
      this.heldAt.set(null);
    } else if (this.order() === 'newest' && this.offset() > 0 && update.columns.length) {
      this.hold();
    }
    this.showRows(update);
    // A filter, a swap or removals may have left less than comes before this page.
    if (update.rows.length === 0 && update.total > 0 && this.offset() >= update.total) {
      this.goTo(lastPage(update.total, this.pageSize()));
    }
  }

  private showRows(update: TableUpdate): void {
    if (this.sheet === null) return;
    const where = this.where();
    const shown = shownAt(update, where);
    // This window is about to be replaced, and has none of the rows that are held.
    if (shown.rows.length === 0 && update.rows.length > 0) return;
    this.sheet.show(shown);
    if (this.scrollAfterTurn !== null && shown.offset === where.offset && update.order === windowOf(where).order) {
      this.sheet.scrollTo(this.scrollAfterTurn, shown.rows.length, this.focusAfterTurn);
      this.scrollAfterTurn = this.focusAfterTurn = null;
    }
  }

  /** Keeps the newest rows where they are while one reads them. */
  private hold(): void {
    const update = this.update();
    if (this.order() !== 'newest' || this.heldAt() !== null || !update?.rows.length) return;
    this.heldAt.set(update.total);
    this.showRows(update);
  }

  private turnTo(offset: number): void {
    if (offset === 0) this.heldAt.set(null);
    else this.hold();
    this.change({ offset });
  }

  private change(changed: Partial<ViewState>): void {
    this.view.update((view) => ({ ...view, ...changed }));
  }

  private ask(changed: Partial<Pick<ViewState, 'sort' | 'filter' | 'search'>>): void {
    // The grid also reports changes that were made from here.
    const view = this.view();
    if (encodeView({ ...view, ...changed }) === encodeView(view)) return;
    this.heldAt.set(null);
    this.tempo.restart();
    this.scrollAfterTurn = 'next';
    this.change({ ...changed, offset: 0 });
  }

  private turn(turn: Turn): void {
    if (turn === 'next' && this.hasNext()) this.goTo(this.offset() + this.pageSize());
    if (turn === 'previous' && this.hasPrevious()) this.goTo(this.offset() - this.pageSize(), 'previous');
  }

  private pressed(event: KeyboardEvent, row: number, isLast: boolean): void {
    const isOn = isLast && this.hasNext() && (event.key === 'ArrowDown' || event.key === 'PageDown');
    // From the first row, the arrow leads to the headings.
    const isBack = row === 0 && this.hasPrevious() && event.key === 'PageUp';
    if (isOn || isBack) {
      this.focusAfterTurn = this.sheet?.focused?.column ?? null;
      this.turn(isOn ? 'next' : 'previous');
    } else if (WALKING_KEYS.has(event.key)) {
      this.hold();
    }
    const update = this.update();
    if (event.key === 'c' && (event.ctrlKey || event.metaKey) && this.sheet && update)
      void this.takeout.copyFocused(this.sheet, shownAt(update, this.where()));
  }
}
