import {
  DestroyRef,
  ElementRef,
  afterNextRender,
  viewChild,
  Component,
  computed,
  effect,
  inject,
  input,
  signal,
  untracked,
} from '@angular/core';
import {
  type CellKeyDownEvent,
  type FullWidthCellKeyDownEvent,
  type GetRowIdParams,
  type GridApi,
  type GridOptions,
  createGrid,
} from 'ag-grid-community';
import type { Query, Subscription, TableUpdate } from 'table-hub';
import { LiveTableService } from '../live-table.service';
import { ServerApi, type ExportFormat } from '../server-api';
import { Session } from '../session';
import { type GridRow, columnDefs, sameColumns } from './columns';
import { copyText, saveFile, tabSeparated } from './copy';
import { conditions } from './filters';
import { ROW_HEIGHT, gridTheme } from './grid-modules';
import { type Turn, PageTurner } from './page-turner';
import { TableChart } from '../table-chart/table-chart';
import { Rows } from './rows';
import { StateLine } from './state-line';
import { Tempo } from './tempo';
import { shown } from './values';

type WholeQuery = Required<Pick<Query, 'sort' | 'filter' | 'search'>>;

const COUNT = new Intl.NumberFormat('en-US');
const SEARCH_AFTER_MS = 250;
const SWIPE_PIXELS = 60;
const EVERYTHING: WholeQuery = { sort: [], filter: [], search: '' };

let instances = 0;

/** A page of a live table; sorting, filters and the search are the server's, over the whole table. */
@Component({
  selector: 'app-live-table',
  imports: [StateLine, TableChart],
  templateUrl: './live-table.html',
  styleUrl: './live-table.css',
})
export class LiveTable {
  readonly tableName = input.required<string>();
  readonly pageSize = input(300);

  private readonly tables = inject(LiveTableService);
  private readonly server = inject(ServerApi);
  private readonly session = inject(Session);
  private readonly place = viewChild.required<ElementRef<HTMLElement>>('grid');
  private readonly rows = new Rows();
  private readonly pageTurner = new PageTurner();
  private grid: GridApi<GridRow> | null = null;
  private subscription: Subscription | null = null;
  private scrollAfterTurn: Turn | null = null;
  /** The column in which the keyboard goes on after it has turned the page. */
  private focusAfterTurn: string | null = null;
  private searching: ReturnType<typeof setTimeout> | undefined;
  private touchedAt = 0;

  protected readonly id = `live-table-${++instances}`;
  protected readonly tempo = new Tempo();
  protected readonly update = signal<TableUpdate | null>(null);
  protected readonly query = signal<WholeQuery>(EVERYTHING);
  protected readonly offset = signal(0);
  protected readonly hidden = signal<ReadonlySet<string>>(new Set());
  protected readonly isCharted = signal(false);
  protected readonly note = signal('');

  protected readonly columns = computed(() => this.update()?.columns ?? [], { equal: sameColumns });
  protected readonly total = computed(() => this.update()?.total ?? 0);
  protected readonly hasPrevious = computed(() => this.offset() > 0);
  protected readonly hasNext = computed(() => this.offset() + this.pageSize() < this.total());
  protected readonly isNarrowed = computed(() => this.query().filter.length > 0 || this.query().search !== '');
  protected readonly range = computed(() => {
    const update = this.update();
    if (update === null || update.columns.length === 0) return '';
    if (update.rows.length === 0) return this.isNarrowed() ? 'no rows match' : 'no rows yet';
    const last = update.offset + update.rows.length - 1;
    return `rows ${COUNT.format(update.offset)}–${COUNT.format(last)} of ${COUNT.format(update.total)}`;
  });

  protected readonly gridOptions: GridOptions<GridRow> = {
    theme: gridTheme,
    rowData: [],
    columnDefs: [],
    defaultColDef: { enableCellChangeFlash: true, resizable: true, flex: 1, suppressHeaderMenuButton: true },
    getRowId: ({ data }: GetRowIdParams<GridRow>) => data.key,
    // The server has filtered already, by rules of its own.
    alwaysPassFilter: () => true,
    asyncTransactionWaitMillis: 100,
    rowSelection: { mode: 'multiRow', checkboxes: false, headerCheckbox: false, enableClickSelection: true },
    // Arrows walk through the cells, as in every grid; Tab goes on to the pager instead of through all of them.
    tabToNextCell: () => false,
    suppressDragLeaveHidesColumns: true,
    suppressNoRowsOverlay: true,
    animateRows: false,
    onGridReady: ({ api }) => {
      this.grid = api;
      this.showColumns();
      const update = this.update();
      if (update !== null) this.showRows(update);
    },
    onSortChanged: ({ api }) => {
      const sorted = api.getColumnState().filter(({ sort }) => sort);
      sorted.sort((one, other) => (one.sortIndex ?? 0) - (other.sortIndex ?? 0));
      this.ask({ sort: sorted.map(({ colId, sort }) => [colId, sort === 'desc' ? 'desc' : 'asc']) });
    },
    onFilterChanged: ({ api }) => {
      this.ask({ filter: conditions(api.getFilterModel(), this.columns()) });
    },
    onCellKeyDown: (event) => {
      this.pressed(event);
    },
  };

  constructor() {
    const destroyed = inject(DestroyRef);
    afterNextRender(() => {
      const grid = createGrid(this.place().nativeElement, this.gridOptions);
      destroyed.onDestroy(() => {
        this.grid = null;
        grid.destroy();
      });
    });
    effect((onCleanup) => {
      const hub = this.session.hub();
      const table = this.tableName();
      if (hub === null) return;
      untracked(() => {
        this.attach(table);
      });
      onCleanup(() => this.subscription?.unsubscribe());
    });
    effect(() => {
      this.columns();
      untracked(() => {
        this.showColumns();
      });
    });
    effect(() => {
      const size = this.pageSize();
      untracked(() => this.subscription?.setWindow(this.offset(), size));
    });
  }

  /** Goes to the page that begins with this row. */
  protected goTo(offset: number, turn: Turn = 'next'): void {
    this.scrollAfterTurn = turn;
    this.offset.set(Math.max(0, offset));
    this.subscription?.setWindow(this.offset(), this.pageSize());
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

  protected toggleColumn(name: string, isShown: boolean): void {
    const hidden = new Set(this.hidden());
    if (isShown) hidden.delete(name);
    else hidden.add(name);
    this.hidden.set(hidden);
    this.grid?.setColumnsVisible([name], isShown);
  }

  protected async export(format: ExportFormat): Promise<void> {
    this.note.set(`Exporting ${format}…`);
    try {
      const name = this.tableName();
      saveFile(await this.server.exported(name, format, this.query()), `${name}.${format}`);
      this.note.set('');
    } catch (error) {
      this.note.set(`The export failed: ${error instanceof Error ? error.message : String(error)}`);
    }
  }

  /** Copies the selected rows, or all of the page. */
  protected async copy(): Promise<void> {
    const update = this.update();
    if (update === null) return;
    const selected = new Set(this.grid?.getSelectedRows().map(({ key }) => key));
    const places = update.columns.map((_, place) => place);
    const visible = places.filter((place) => !this.hidden().has(update.columns[place]?.name ?? ''));
    const rows = update.rows.filter((_, place) => selected.size === 0 || selected.has(update.keys[place] ?? ''));
    const head = visible.map((place) => update.columns[place]?.name ?? '');
    const body = rows.map((row) => visible.map((place) => shown(row[place], update.columns[place]?.type ?? 'string')));
    const what = `${COUNT.format(rows.length)} ${rows.length === 1 ? 'row' : 'rows'}`;
    await this.copyAs(tabSeparated([head, ...body]), what);
  }

  protected wheeled({ deltaY }: WheelEvent): void {
    if (deltaY !== 0) this.scrolledOn(deltaY > 0);
  }

  protected touched({ touches }: TouchEvent): void {
    this.touchedAt = touches[0]?.clientY ?? 0;
  }

  protected swiped({ changedTouches }: TouchEvent): void {
    const way = this.touchedAt - (changedTouches[0]?.clientY ?? this.touchedAt);
    if (Math.abs(way) > SWIPE_PIXELS) this.scrolledOn(way > 0);
  }

  private attach(table: string): void {
    this.subscription = this.tables.subscribe(
      table,
      (update) => {
        this.take(update);
      },
      { offset: this.offset(), size: this.pageSize(), ...this.query() },
    );
  }

  private take(update: TableUpdate): void {
    this.tempo.take(update, Date.now());
    this.update.set(update);
    this.showRows(update);
    // A filter, a swap or removals may have left less than comes before this page.
    if (update.rows.length === 0 && update.total > 0 && update.offset >= update.total) {
      this.goTo(Math.floor((update.total - 1) / this.pageSize()) * this.pageSize());
    }
  }

  private showColumns(): void {
    if (this.columns().length) this.grid?.setGridOption('columnDefs', columnDefs(this.columns()));
  }

  private showRows(update: TableUpdate): void {
    if (this.grid === null) return;
    const step = this.rows.take(update);
    if (step.kind === 'patch') {
      this.grid.applyTransactionAsync({ update: step.update, add: step.add });
    } else if (step.kind === 'replace') {
      this.grid.flushAsyncTransactions();
      this.grid.setGridOption('rowData', step.rows);
      if (this.scrollAfterTurn !== null && update.offset === this.offset()) this.scrollToStart(step.rows.length);
    }
  }

  private scrollToStart(count: number): void {
    if (count) {
      const place = this.scrollAfterTurn === 'previous' ? count - 1 : 0;
      this.grid?.ensureIndexVisible(place, place ? 'bottom' : 'top');
      if (this.focusAfterTurn !== null) this.grid?.setFocusedCell(place, this.focusAfterTurn);
    }
    this.scrollAfterTurn = this.focusAfterTurn = null;
  }

  private ask(changed: Partial<WholeQuery>): void {
    this.query.update((query) => ({ ...query, ...changed }));
    this.offset.set(0);
    this.scrollAfterTurn = 'next';
    this.subscription?.setWindow(0, this.pageSize(), this.query());
  }

  private scrolledOn(down: boolean): void {
    const range = this.grid?.getVerticalPixelRange();
    if (range === undefined) return;
    const height = (this.grid?.getDisplayedRowCount() ?? 0) * ROW_HEIGHT;
    const turn = this.pageTurner.turn(down, range.top <= 1, range.bottom >= height - 1, performance.now());
    this.turn(turn);
  }

  private turn(turn: Turn | null): void {
    if (turn === 'next' && this.hasNext()) this.goTo(this.offset() + this.pageSize());
    if (turn === 'previous' && this.hasPrevious()) this.goTo(this.offset() - this.pageSize(), 'previous');
  }

  private pressed({ event, node }: CellKeyDownEvent<GridRow> | FullWidthCellKeyDownEvent<GridRow>): void {
    if (!(event instanceof KeyboardEvent)) return;
    const isLast = node.rowIndex === (this.grid?.getDisplayedRowCount() ?? 0) - 1;
    const isOn = isLast && this.hasNext() && (event.key === 'ArrowDown' || event.key === 'PageDown');
    // From the first row, the arrow leads to the headings.
    const isBack = node.rowIndex === 0 && this.hasPrevious() && event.key === 'PageUp';
    if (isOn || isBack) {
      this.focusAfterTurn = this.grid?.getFocusedCell()?.column.getColId() ?? null;
      this.turn(isOn ? 'next' : 'previous');
    }
    if (event.key === 'c' && (event.ctrlKey || event.metaKey)) this.copyFromKeyboard();
  }

  /** Several selected rows, otherwise the cell that has the focus: a click on it selects its row as well. */
  private copyFromKeyboard(): void {
    if ((this.grid?.getSelectedRows().length ?? 0) > 1) {
      void this.copy();
      return;
    }
    const focused = this.grid?.getFocusedCell();
    const update = this.update();
    if (!focused || update === null) return;
    const place = update.columns.findIndex(({ name }) => name === focused.column.getColId());
    const text = shown(update.rows[focused.rowIndex]?.[place], update.columns[place]?.type ?? 'string');
    void this.copyAs(text, 'the cell');
  }

  private async copyAs(text: string, what: string): Promise<void> {
    try {
      await copyText(text);
      this.note.set(`Copied ${what}.`);
    } catch {
      this.note.set(`The browser did not let ${what} onto the clipboard.`);
    }
  }
}
