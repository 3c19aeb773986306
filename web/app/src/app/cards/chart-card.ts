import { Component, computed, inject, input } from '@angular/core';
import { COUNT } from '../count';
import { CanvasChart } from '../table-chart/canvas-chart';
import { COLOURS, type Drawing, type DrawingKind, drawing } from '../table-chart/drawings';
import { ThemeChoice } from '../theme';
import { chartFeed, queryOf } from './chart-feed';
import type { Card } from './layout';
import { type Bar, BarList, shareText } from './bar-list';

/** A chart that stays on the board and follows its table. */
@Component({
  selector: 'app-chart-card',
  imports: [BarList, CanvasChart],
  template: `
    @if (card().kind === 'top') {
      <app-bar-list [bars]="frequencies()" [label]="'The most frequent values of ' + card().column" />
    } @else if (shown(); as found) {
      <app-canvas-chart [drawing]="found" />
    }
    <p role="status" [class]="isDrawn() ? 'quiet over' : 'nothing'">{{ summary() }}</p>
  `,
  styles: `
    :host {
      display: flex;
      flex: 1;
      flex-direction: column;
      gap: var(--gap-xs);
      min-height: 0;
      padding: 0 var(--gap-m) var(--gap-s);
    }

    app-canvas-chart,
    app-bar-list {
      flex: 1;
      height: auto;
      min-height: 0;
    }

    .quiet {
      margin-top: auto;
      font-size: var(--size-s);
    }

    /* A low card has room for the picture only. */
    @container (height < 15rem) {
      .over {
        position: absolute;
        clip-path: inset(50%);
      }
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
  protected readonly frequencies = computed((): Bar[] => {
    const { frequencies, rows: all } = this.chart.data() ?? { frequencies: [], rows: 0 };
    return frequencies.map(({ value, rows }) => ({
      name: value ?? '(empty)',
      value: rows,
      text: COUNT.format(rows),
      share: shareText(rows / all),
    }));
  });
  protected readonly isDrawn = computed(
    () => !this.chart.problem() && (this.shown() !== null || this.frequencies().length > 0),
  );
  protected readonly summary = computed(() => {
    const data = this.chart.data();
    if (this.chart.problem()) return this.chart.problem();
    if (data === null) return 'Counting…';
    const isEmpty = this.card().kind !== 'top' && this.shown() === null;
    return isEmpty ? 'Nothing to draw yet.' : `Over ${COUNT.format(data.rows)} rows`;
  });
}
