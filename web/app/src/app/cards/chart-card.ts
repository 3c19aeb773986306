import { Component, computed, inject, input } from '@angular/core';
import { CanvasChart } from '../table-chart/canvas-chart';
import { COLOURS, type Drawing, type DrawingKind, drawing } from '../table-chart/drawings';
import { ThemeChoice } from '../theme';
import { chartFeed, queryOf } from './chart-feed';
import type { Card } from './layout';
import { TopValues } from './top-values';

const COUNT = new Intl.NumberFormat('en-US');

/** A chart that stays on the board and follows its table. */
@Component({
  selector: 'app-chart-card',
  imports: [CanvasChart, TopValues],
  template: `
    @if (card().kind === 'top') {
      <app-top-values [column]="card().column" [data]="chart.data()" />
    } @else if (shown(); as found) {
      <app-canvas-chart [drawing]="found" />
    }
    <p class="quiet" role="status">{{ summary() }}</p>
  `,
  styles: `
    :host {
      display: flex;
      flex: 1;
      flex-direction: column;
      gap: 0.3rem;
      min-height: 0;
      padding: 0 0.8rem 0.5rem;
    }

    app-canvas-chart,
    app-top-values {
      flex: 1;
      height: auto;
      min-height: 0;
    }

    .quiet {
      margin-top: auto;
      color: var(--quiet);
      font-size: 0.86em;
    }
  `,
})
export class ChartCard {
  readonly card = input.required<Card>();

  private readonly themeChoice = inject(ThemeChoice);
  protected readonly chart = chartFeed(() => {
    const { table, column, query } = this.card();
    return { table, column, query: queryOf(query) };
  });
  protected readonly shown = computed((): Drawing | null => {
    const data = this.chart.data();
    const { kind } = this.card();
    return data === null ? null : drawing(kind as DrawingKind, data, COLOURS[this.themeChoice.theme()]);
  });
  protected readonly summary = computed(() => {
    const data = this.chart.data();
    if (this.chart.problem()) return this.chart.problem();
    if (data === null) return 'Counting…';
    const isEmpty = this.card().kind !== 'top' && this.shown() === null;
    return isEmpty ? 'Nothing to draw yet.' : `Over ${COUNT.format(data.rows)} rows`;
  });
}
