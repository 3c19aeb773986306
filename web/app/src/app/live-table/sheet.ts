import {
  type CellKeyDownEvent,
  type ColumnState,
  type FullWidthCellKeyDownEvent,
  type GridApi,
  type GridOptions,
  createGrid,
} from 'ag-grid-community';
import type { Column, Filter, Sort, TableUpdate } from 'table-hub';
import { columnDefs, sameColumns } from './columns';
import { conditions, filterModel } from './filters';
import { FONT_SIZE, gridTheme } from './grid-modules';
import { Looks } from './looks';
import type { Ends, Turn } from './page-turner';
import { type GridRow, Rows } from './rows';
import { whole } from './values';
import { PLAIN_VIEW, type ViewState } from './view-state';
import { fitted } from './widths';

const FRESH_MS = 1_500;
/** Rows that come faster than the eye follows jump instead of sliding. */
const SLIDES_AT_MOST_EVERY_MS = 300;
/** A row is unseen while it begins to slide: of many at once, none would be seen. */
const SLIDES_AT_MOST = 3;
const SCROLLBAR = 16;
const FONT = 'system-ui, sans-serif';
/** A pointer that moves farther before it is let go does not click. */
const CLICK_PIXELS = 6;

/** Who hears what the viewer does with the grid. */
export interface SheetListener {
  sorted(sort: Sort): void;
  filtered(filter: Filter): void;
  arranged(arranged: Pick<ViewState, 'columns' | 'widths'>): void;
  scrolled(isAtTop: boolean): void;
  clicked(key: string | undefined, event: Event | null | undefined): void;
  pressed(event: KeyboardEvent, key: string | undefined, row: number, isLast: boolean): void;
}

/** The grid: shows rows as they are told, and tells what the viewer does with them. */
export class Sheet {
  private readonly grid: GridApi<GridRow>;
  private readonly rows = new Rows();
  private readonly looks = new Looks();
  private columns: readonly Column[] = [];
  private view: ViewState = PLAIN_VIEW;
  private sample: TableUpdate['rows'] = [];
  private isApplying = false;
  private isMeasured = false;
  private slidAt = 0;
  private pressedRow: { key: string | undefined; x: number; y: number } | null = null;
  private raised: ReadonlySet<string> = new Set();

  constructor(
    private readonly place: HTMLElement,
    private readonly listener: SheetListener,
  ) {
    this.grid = createGrid(place, this.options());
    place.addEventListener('mouseover', ({ target }) => {
      if (target instanceof HTMLElement) this.explain(target);
    });
    place.addEventListener('pointerdown', (event) => {
      this.pressedRow = { key: this.keyAt(event.target), x: event.clientX, y: event.clientY };
    });
    place.addEventListener('click', (event) => {
      this.click(event);
    });
  }

  destroy(): void {
    this.grid.destroy();
  }

  get selectedKeys(): ReadonlySet<string> {
    return new Set(this.grid.getSelectedRows().map(({ key }) => key));
  }

  /** The names of the columns that are shown, in their order. */
  get shownColumns(): string[] {
    return this.grid.getAllDisplayedColumns().map((column) => column.getColId());
  }

  /** The column and the key of the row of the cell that has the focus. */
  get focused(): { column: string; key: string } | null {
    const cell = this.grid.getFocusedCell();
    const key = cell && this.grid.getDisplayedRowAtIndex(cell.rowIndex)?.data?.key;
    return key === undefined || key === null ? null : { column: cell?.column.getColId() ?? '', key };
  }

  /** A value as the grid writes it. */
  text(value: TableUpdate['rows'][number][number] | undefined, column: Column): string {
    return this.looks.text(value, column);
  }

  private setColumns(columns: readonly Column[]): void {
    if (columns.length === 0 || sameColumns(columns, this.columns)) return;
    this.columns = columns;
    this.looks.forget();
    this.isMeasured = false;
    this.grid.setGridOption('columnDefs', columnDefs(columns, this.looks));
    this.arrange();
  }

  setView(view: ViewState): void {
    this.view = view;
    this.looks.setUpAs(view);
    if (this.columns.length === 0) return;
    this.arrange();
    this.rewrite();
  }

  /** Marks the rows for which an alert is raised, and no others. */
  mark(raised: ReadonlySet<string>): void {
    const before = this.raised;
    this.raised = raised;
    const keys = [...new Set([...raised, ...before])].filter((key) => raised.has(key) !== before.has(key));
    const rowNodes = keys.flatMap((key) => this.grid.getRowNode(key) ?? []);
    if (rowNodes.length) this.grid.redrawRows({ rowNodes });
  }

  /** Texts that tell how long ago something was. */
  tick(): void {
    const columns = this.looks.relative.filter((name) => this.columns.some((column) => column.name === name));
    if (columns.length) this.rewrite(columns);
  }

  show(update: TableUpdate): void {
    this.setColumns(update.columns);
    const now = Date.now();
    this.sample = update.rows;
    const isRewritten = this.looks.take(update, now);
    const step = this.rows.take(update, now);
    if (step.kind === 'patch') {
      if (step.insert.length) this.slide(step.insert.length, now);
      this.grid.applyTransaction({ add: step.insert, addIndex: 0, remove: step.remove, update: step.update });
      if (step.add.length) this.grid.applyTransaction({ add: step.add });
    } else if (step.kind === 'replace') {
      this.grid.setGridOption('animateRows', false);
      this.grid.setGridOption('rowData', step.rows);
    }
    if (isRewritten || !this.isMeasured) this.measure();
    if (isRewritten) this.rewrite();
  }

  /** Shows the beginning of another page, or its end for who turns back, and goes on in the focused column. */
  scrollTo(turn: Turn, count: number, focused: string | null): void {
    if (count === 0) return;
    const place = turn === 'previous' ? count - 1 : 0;
    this.grid.ensureIndexVisible(place, place ? 'bottom' : 'top');
    if (focused !== null) this.grid.setFocusedCell(place, focused);
  }

  get ends(): Ends {
    const { top, bottom } = this.grid.getVerticalPixelRange();
    const { rowHeight } = this.grid.getSizesForCurrentTheme();
    return { isAtStart: top <= 1, isAtEnd: bottom >= this.grid.getDisplayedRowCount() * rowHeight - 1 };
  }

  private options(): GridOptions<GridRow> {
    return {
      theme: gridTheme,
      rowData: [],
      columnDefs: [],
      defaultColDef: { enableCellChangeFlash: true, resizable: true, suppressHeaderMenuButton: true },
      getRowId: ({ data }) => data.key,
      rowClassRules: {
        fresh: ({ data }) => data?.cameAt != null && Date.now() - data.cameAt < FRESH_MS,
        raised: ({ data }) => data !== undefined && this.raised.has(data.key),
      },
      // The server has filtered already, by rules of its own.
      alwaysPassFilter: () => true,
      rowSelection: { mode: 'multiRow', checkboxes: false, headerCheckbox: false, enableClickSelection: true },
      // Arrows walk through the cells, as in every grid; Tab goes on to the pager instead of through all of them.
      tabToNextCell: () => false,
      suppressDragLeaveHidesColumns: true,
      suppressNoRowsOverlay: true,
      animateRows: false,
      onSortChanged: ({ api }) => {
        if (this.isApplying) return;
        const sorted = api.getColumnState().filter(({ sort }) => sort);
        sorted.sort((one, other) => (one.sortIndex ?? 0) - (other.sortIndex ?? 0));
        this.listener.sorted(sorted.map(({ colId, sort }) => [colId, sort === 'desc' ? 'desc' : 'asc']));
      },
      onFilterChanged: ({ api }) => {
        if (!this.isApplying) this.listener.filtered(conditions(api.getFilterModel(), this.columns));
      },
      onColumnMoved: ({ finished }) => {
        if (finished && !this.isApplying) this.tellArranged();
      },
      onColumnResized: ({ finished, source, columns }) => {
        if (!finished || source !== 'uiColumnResized') return;
        const widths = Object.fromEntries((columns ?? []).map((each) => [each.getColId(), each.getActualWidth()]));
        this.tellArranged(widths);
      },
      onGridSizeChanged: () => {
        if (this.columns.length) this.measure();
      },
      onBodyScroll: ({ direction }) => {
        if (direction === 'vertical') this.listener.scrolled(this.ends.isAtStart);
      },
      onCellKeyDown: (event) => {
        this.press(event);
      },
    };
  }

  /** A click is on the row that was pressed: others may have come under the pointer until it was let go. */
  private click(event: MouseEvent): void {
    const pressed = this.pressedRow;
    this.pressedRow = null;
    if (pressed && Math.hypot(event.clientX - pressed.x, event.clientY - pressed.y) >= CLICK_PIXELS) return;
    const key = pressed ? pressed.key : this.keyAt(event.target);
    const isAlone = !event.ctrlKey && !event.metaKey && !event.shiftKey;
    if (key !== undefined && isAlone) this.grid.getRowNode(key)?.setSelected(true, true);
    this.listener.clicked(key, event);
  }

  private keyAt(target: EventTarget | null): string | undefined {
    return target instanceof Element ? this.rowAt(target)?.key : undefined;
  }

  /** The row by its place, since the document writes its key with other characters. */
  private rowAt(element: Element | null): GridRow | undefined {
    const index = element?.closest('.ag-row')?.getAttribute('row-index');
    return index ? this.grid.getDisplayedRowAtIndex(Number(index))?.data : undefined;
  }

  private press({ event, node }: CellKeyDownEvent<GridRow> | FullWidthCellKeyDownEvent<GridRow>): void {
    if (!(event instanceof KeyboardEvent)) return;
    const row = node.rowIndex ?? 0;
    this.listener.pressed(event, node.data?.key, row, row === this.grid.getDisplayedRowCount() - 1);
  }

  private tellArranged(widths: Record<string, number> = {}): void {
    const order = this.grid.getColumnState().map(({ colId }) => colId);
    const isOwn = order.every((name, place) => name === this.columns[place]?.name);
    this.listener.arranged({ columns: isOwn ? [] : order, widths: { ...this.view.widths, ...widths } });
  }

  /** Puts columns, sort and filters as the view has them. */
  private arrange(): void {
    const { hidden, columns, sort, filter } = this.view;
    const names = this.columns.map(({ name }) => name);
    const known = columns.filter((name) => names.includes(name));
    const order = [...known, ...names.filter((name) => !known.includes(name))];
    const state = order.map((colId): ColumnState => {
      const sortIndex = sort.findIndex(([name]) => name === colId);
      return { colId, hide: hidden.includes(colId), sort: sort[sortIndex]?.[1] ?? null, sortIndex };
    });
    this.isApplying = true;
    this.grid.applyColumnState({ state, applyOrder: true });
    const model = filterModel(filter, this.columns);
    if (JSON.stringify(conditions(this.grid.getFilterModel(), this.columns)) !== JSON.stringify(filter))
      this.grid.setFilterModel(model);
    this.isApplying = false;
    if (this.isMeasured) this.measure();
  }

  /** Widths by heading and content; where there is room, columns share it. */
  private measure(): void {
    // Headings alone are enough for a table without rows, but not for those that will come.
    this.isMeasured = this.sample.length > 0;
    const context = document.createElement('canvas').getContext('2d');
    const root = parseFloat(getComputedStyle(document.documentElement).fontSize);
    if (context) context.font = `${FONT_SIZE * root}px ${FONT}`;
    const measure = (text: string) => context?.measureText(text).width ?? 7 * text.length;
    const { hidden, widths } = this.view;
    const shown = this.columns.flatMap((column, place) => {
      if (hidden.includes(column.name)) return [];
      const own = widths[column.name];
      const needed = own ? { width: own, least: own } : this.looks.needs(column, place, this.sample, measure);
      return [{ colId: column.name, own, ...needed }];
    });
    const room = this.place.clientWidth - SCROLLBAR;
    const fits = fitted(shown, room);
    const isRoomy = fits.reduce((sum, width) => sum + width, 0) < room;
    this.grid.applyColumnState({
      state: shown.map(({ colId, own }, place) => ({
        colId,
        width: fits[place] ?? null,
        flex: isRoomy && own === undefined ? (fits[place] ?? null) : null,
      })),
    });
  }

  private rewrite(columns: string[] | null = null): void {
    this.grid.refreshCells({ ...(columns && { columns }), force: true, suppressFlash: true });
  }

  private slide(count: number, now: number): void {
    // On a busy page those before may still be unseen.
    const isBehind = this.place.querySelector('.ag-row.ag-opacity-zero') !== null;
    const isCalm = count <= SLIDES_AT_MOST && now - this.slidAt > SLIDES_AT_MOST_EVERY_MS && !isBehind;
    this.slidAt = now;
    this.place.classList.toggle('busy', !isCalm);
    this.grid.setGridOption('animateRows', isCalm && !matchMedia('(prefers-reduced-motion: reduce)').matches);
  }

  /** Under the pointer: all of a value that does not fit or says more than is shown. */
  private explain(target: HTMLElement): void {
    const cell = target.closest<HTMLElement>('.ag-cell');
    const place = this.columns.findIndex(({ name }) => name === cell?.getAttribute('col-id'));
    const column = this.columns[place];
    const value = this.rowAt(cell)?.values[place];
    if (cell === null || column === undefined) return;
    const text = whole(value, column.type);
    const isCut = cell.scrollWidth > cell.clientWidth;
    cell.title = isCut || text !== cell.textContent ? text : '';
  }
}
