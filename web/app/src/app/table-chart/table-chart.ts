import { Component, computed, inject, input, linkedSignal } from '@angular/core';
import { Router } from '@angular/router';
import { type Column, type Query, WIRE_TYPES } from 'table-hub';
import { chartFeed } from '../cards/chart-feed';
import { card, encodeCards } from '../cards/layout';
import { COUNT } from '../count';
import { ThemeChoice } from '../theme';
import { CanvasChart } from './canvas-chart';
import { COLOURS, type DrawingKind, drawings } from './drawings';

/** Pictures of a column over the whole table, or over all rows that match; they follow the table. */
@Component({
  selector: 'app-table-chart',
  imports: [CanvasChart],
  template: `
    <label [attr.for]="'chart-of-' + tableName()">Column</label>
    <select #choice [id]="'chart-of-' + tableName()" (change)="column.set(choice.value)">
      @for (each of columns(); track each.name) {
        <option [value]="each.name" [selected]="each.name === column()">{{ each.name }}</option>
      }
    </select>
    @for (drawing of shownDrawings(); track drawing.title) {
      <div class="head">
        <h3>{{ drawing.title }}</h3>
        <button
          type="button"
          [attr.aria-label]="'Keep on the board: ' + drawing.title"
          (click)="keep(drawing.kind, $event)"
        >
          Keep on the board
        </button>
      </div>
      <app-canvas-chart [drawing]="drawing" />
    }
    <p role="status">{{ summary() }}</p>
  `,
  styles: `
    :host {
      display: grid;
      gap: var(--gap-s);
    }

    .head {
      display: flex;
      flex-wrap: wrap;
      align-items: center;
      justify-content: space-between;
      gap: var(--gap-s);
    }
  `,
})
export class TableChart {
  readonly tableName = input.required<string>();
  readonly columns = input.required<readonly Column[]>();
  readonly query = input.required<Query>();

  private readonly router = inject(Router);
  private readonly themeChoice = inject(ThemeChoice);

  protected readonly column = linkedSignal(() => firstWorthwhile(this.columns()));
  private readonly chart = chartFeed(() => ({ table: this.tableName(), column: this.column(), query: this.query() }));
  protected readonly shownDrawings = computed(() => {
    const data = this.chart.data();
    return data === null ? [] : drawings(data, COLOURS[this.themeChoice.theme()]);
  });
  protected readonly summary = computed(() => {
    const data = this.chart.data();
    return this.chart.problem() || (data === null ? 'Counting…' : `Over ${COUNT.format(data.rows)} rows.`);
  });

  /** Leaves the dialog for the board, where the chart stays. */
  protected keep(kind: DrawingKind, { currentTarget }: Event): void {
    if (currentTarget instanceof HTMLElement) currentTarget.closest('dialog')?.close();
    const { filter, search } = this.query();
    const query = filter?.length || search ? JSON.stringify({ filter, search }) : '';
    void this.router.navigate(['/'], {
      queryParams: { add: encodeCards([card(kind, this.tableName(), { column: this.column(), query })]) },
      queryParamsHandling: 'merge',
    });
  }
}

/** The first column of numbers, otherwise the first of all. */
function firstWorthwhile(columns: readonly Column[]): string {
  const numeric = columns.find(({ type }) => WIRE_TYPES[type].isNumber);
  return (numeric ?? columns[0])?.name ?? '';
}
