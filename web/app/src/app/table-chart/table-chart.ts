import { Component, computed, effect, inject, input, linkedSignal, signal } from '@angular/core';
import type { Column, Query } from 'table-hub';
import { ServerApi, type ChartData } from '../server-api';
import { ThemeChoice } from '../theme';
import { CanvasChart } from './canvas-chart';
import { type Colours, drawings } from './drawings';

const REFRESH_MS = 2_000;
const COUNT = new Intl.NumberFormat('en-US');
const COLOURS: Record<'light' | 'dark', Colours> = {
  light: { accent: '#0e6177', text: '#4f5f6d', line: '#d3dce3' },
  dark: { accent: '#4cc3df', text: '#9fb0be', line: '#2b3947' },
};

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
      <h3>{{ drawing.title }}</h3>
      <app-canvas-chart [drawing]="drawing" />
    }
    <p role="status">{{ summary() }}</p>
  `,
  styles: `
    :host {
      display: grid;
      gap: 0.5rem;
    }

    h3,
    p {
      margin: 0;
      font-size: 1em;
    }
  `,
})
export class TableChart {
  readonly tableName = input.required<string>();
  readonly columns = input.required<readonly Column[]>();
  readonly query = input.required<Query>();

  private readonly server = inject(ServerApi);
  private readonly themeChoice = inject(ThemeChoice);
  private readonly data = signal<ChartData | null>(null);
  private readonly problem = signal('');

  protected readonly column = linkedSignal(() => firstWorthwhile(this.columns()));
  protected readonly shownDrawings = computed(() => {
    const data = this.data();
    return data === null ? [] : drawings(data, COLOURS[this.themeChoice.theme()]);
  });
  protected readonly summary = computed(() => {
    const data = this.data();
    return this.problem() || (data === null ? 'Counting…' : `Over ${COUNT.format(data.rows)} rows.`);
  });

  constructor() {
    effect((onCleanup) => {
      const asked = [this.tableName(), this.column(), this.query()] as const;
      let isOver = false;
      void this.follow(asked, () => isOver);
      onCleanup(() => {
        isOver = true;
      });
    });
  }

  private async follow(asked: readonly [string, string, Query], isOver: () => boolean): Promise<void> {
    while (!isOver()) {
      try {
        const data = await this.server.chart(...asked);
        if (isOver()) return;
        this.data.set(data);
        this.problem.set('');
      } catch (error) {
        this.problem.set(error instanceof Error ? error.message : String(error));
      }
      await new Promise((resolve) => setTimeout(resolve, REFRESH_MS));
    }
  }
}

/** The first column of numbers, otherwise the first of all. */
function firstWorthwhile(columns: readonly Column[]): string {
  const numeric = columns.find(({ type }) => type === 'float64' || type === 'int32' || type === 'int64');
  return (numeric ?? columns[0])?.name ?? '';
}
