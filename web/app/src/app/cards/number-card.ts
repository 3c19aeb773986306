import { Component, computed, effect, inject, input, linkedSignal, signal, untracked } from '@angular/core';
import { Catalogue } from '../catalogue';
import { COUNT } from '../count';
import { LiveTableService } from '../live-table.service';
import type { ChartData } from '../server-api';
import { Session } from '../session';
import { chartFeed, queryOf } from './chart-feed';
import { figureText } from './figures';
import { type Card, type Measure, cardId, cardTitle } from './layout';
import { RowRate } from './row-rate';
import { Sparkline } from './sparkline';

const SECOND_MS = 1_000;
const REMEMBERED = 60;
/** Tables whose rows are as of now, so that their times tell nothing of what was before. */
const OF_NOW = new Set(['aggregate', 'view']);

/** One big number: the rows of a table with how many come in a second, or what a column comes to and how it went. */
@Component({
  selector: 'app-number-card',
  imports: [Sparkline],
  template: `
    <p class="figure">
      <strong [title]="whole()">{{ text() }}</strong>
      <span class="quiet">{{ detail() }}</span>
    </p>
    <app-sparkline [values]="line()" [label]="lineLabel()" [isFromZero]="!isRemembered()" />
  `,
  styles: `
    :host {
      display: grid;
      flex: 1;
      grid-template: minmax(0, 1fr) / auto minmax(0, 1fr);
      align-items: end;
      gap: var(--gap-m);
      min-height: 0;
      padding: 0 var(--gap-m) var(--gap-s);
    }

    .figure {
      display: grid;
      white-space: nowrap;
    }

    strong {
      font-size: clamp(1.4rem, min(13cqi, 32cqh), 7rem);
      font-variant-numeric: tabular-nums;
      font-weight: 650;
      line-height: 1.1;
      letter-spacing: -0.01em;
    }

    .quiet {
      min-height: 1.2em;
      font-size: var(--size-s);
      line-height: 1.2;
      font-variant-numeric: tabular-nums;
    }

    app-sparkline {
      height: 100%;
      max-height: 6rem;
    }
  `,
})
export class NumberCard {
  readonly card = input.required<Card>();

  private readonly session = inject(Session);
  private readonly tables = inject(LiveTableService);
  private readonly catalogue = inject(Catalogue);
  private readonly total = signal<number | null>(null);
  private readonly rates = signal<readonly number[]>([]);
  private readonly isOfRows = computed(() => this.card().measure === 'rows');
  private readonly chart = chartFeed(() => {
    const { table, column, query } = this.card();
    return this.isOfRows() ? null : { table, column, query: queryOf(query) };
  });

  /** Whether the line is made of what this page has seen, because the rows do not tell how the number went. */
  protected readonly isRemembered = computed(() => {
    const { table, measure } = this.card();
    const isOfNow = this.catalogue.tables().some(({ name, kind }) => name === table && OF_NOW.has(kind ?? ''));
    return !this.isOfRows() && (isOfNow || measure === 'sum');
  });
  private readonly value = computed(() =>
    this.isOfRows() ? this.total() : valueOf(this.chart.data(), this.card().measure),
  );
  /** What the number was at the last looks at it. */
  private readonly remembered = linkedSignal<
    { card: Card; data: ChartData | null },
    { id: string; values: readonly number[] }
  >({
    source: () => ({ card: this.card(), data: this.chart.data() }),
    computation: ({ card, data }, before) => {
      const id = cardId(card);
      const values = before?.value.id === id ? before.value.values : [];
      const value = data?.column === card.column ? valueOf(data, card.measure) : null;
      return { id, values: value === null ? values : [...values, value].slice(-REMEMBERED) };
    },
  });
  protected readonly text = computed(() => {
    const value = this.value();
    if (value === null) return '–';
    return this.isOfRows() ? COUNT.format(value) : figureText(value);
  });
  protected readonly whole = computed(() => String(this.value() ?? ''));
  protected readonly detail = computed(() => {
    if (!this.isOfRows()) {
      const rows = this.chart.data()?.rows;
      return this.chart.problem() || (rows === undefined ? '' : `of ${COUNT.format(rows)} rows`);
    }
    const latest = this.rates().slice(-10);
    const rate = latest.reduce((sum, each) => sum + each, 0) / (latest.length || 1);
    return `${rate >= 10 || rate === 0 ? rate.toFixed(0) : rate.toFixed(1)} rows/s`;
  });
  protected readonly line = computed(() => {
    const { measure } = this.card();
    if (measure === 'rows') return this.rates();
    if (measure === 'sum' || this.isRemembered()) return this.remembered().values;
    return this.chart.data()?.series.map((step) => step[measure]) ?? [];
  });
  protected readonly lineLabel = computed(() => {
    if (this.isOfRows()) return `Rows a second of ${this.card().table}`;
    return `${cardTitle(this.card())}: ${this.isRemembered() ? 'as it was here of late' : 'over time'}`;
  });

  constructor() {
    const key = computed(() => JSON.stringify([this.card().table, this.card().query, this.isOfRows()]));
    effect((onCleanup) => {
      key();
      if (this.session.hub() === null || !this.isOfRows()) return;
      const { table, query } = untracked(this.card);
      const rate = new RowRate();
      const subscription = untracked(() =>
        this.tables.subscribe(
          table,
          (update) => {
            rate.take(update);
            if (update.columns.length) this.total.set(update.total);
          },
          { ...queryOf(query), size: 1 },
        ),
      );
      const ticking = setInterval(() => {
        this.rates.set(rate.tick(performance.now()));
      }, SECOND_MS);
      onCleanup(() => {
        clearInterval(ticking);
        subscription.unsubscribe();
      });
    });
  }
}

/** What a column comes to; null where there is nothing yet. */
function valueOf(data: ChartData | null, measure: Measure): number | null {
  const found = data?.distribution;
  if (found === null || found === undefined) return null;
  const { low, high, mean, sum } = found;
  return { rows: null, least: low, greatest: high, mean, sum }[measure];
}
