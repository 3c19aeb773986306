import { Component, computed, effect, inject, input, signal, untracked } from '@angular/core';
import type { TableUpdate } from 'table-hub';
import { Catalogue } from '../catalogue';
import { COUNT } from '../count';
import { LiveTableService } from '../live-table.service';
import { Session } from '../session';
import { type Bar, BarList, shareText } from './bar-list';
import { queryOf } from './chart-feed';
import { figureText } from './figures';
import { type Card, cardTitle, isGroupName, measureOf } from './layout';

const MOST = 50;

/** The rows of a small table as groups: what they are called, and one of their numbers, the greatest first. */
@Component({
  selector: 'app-groups-card',
  imports: [BarList],
  template: `
    @if (bars().length) {
      <app-bar-list [bars]="bars()" [label]="title()" />
    }
    <p role="status" [class]="bars().length ? 'quiet' : 'nothing'">{{ note() }}</p>
  `,
  styles: `
    :host {
      display: flex;
      flex: 1;
      flex-direction: column;
      min-height: 0;
      padding: 0 var(--gap-m) var(--gap-s);
    }

    app-bar-list {
      flex: 1;
      min-height: 0;
    }

    .quiet:empty {
      display: none;
    }

    .quiet {
      font-size: var(--size-s);
    }
  `,
})
export class GroupsCard {
  readonly card = input.required<Card>();

  private readonly session = inject(Session);
  private readonly tables = inject(LiveTableService);
  private readonly catalogue = inject(Catalogue);
  private readonly update = signal<TableUpdate | null>(null);

  protected readonly title = computed(() => cardTitle(this.card(), this.catalogue.tables()));
  protected readonly bars = computed(() => {
    const update = this.update();
    return update === null ? [] : barsOf(update, this.card().column);
  });
  protected readonly note = computed(() => {
    const update = this.update();
    if (update === null) return 'Connecting…';
    if (update.columns.length === 0) return update.problem ?? '';
    if (update.total === 0) return 'No rows yet.';
    const left = update.total - this.bars().length;
    return left > 0 ? `and ${COUNT.format(left)} more` : '';
  });

  constructor() {
    const asked = computed(() => JSON.stringify([this.card().table, this.card().column, this.card().query]));
    effect((onCleanup) => {
      asked();
      if (this.session.hub() === null) return;
      const { table, column, query } = untracked(this.card);
      const subscription = untracked(() =>
        this.tables.subscribe(
          table,
          (update) => {
            this.update.set(update);
          },
          { ...queryOf(query), sort: [[column, 'desc']], size: MOST },
        ),
      );
      onCleanup(() => {
        subscription.unsubscribe();
      });
    });
  }
}

/** A bar for each row; shares only where all rows are there and add up to something. */
export function barsOf(
  { columns, rows, total }: Pick<TableUpdate, 'columns' | 'rows' | 'total'>,
  column: string,
): Bar[] {
  const place = columns.findIndex(({ name }) => name === column);
  const names = columns.flatMap((each, at) => (isGroupName(each) ? [at] : []));
  const groups = rows.map((row) => ({
    name: names.map((each) => String(row[each] ?? '(empty)')).join(' · '),
    value: Number(row[place] ?? 0),
  }));
  const sum = groups.reduce((all, { value }) => all + value, 0);
  const isWhole = measureOf(column) === 'sum' && rows.length === total && groups.every(({ value }) => value >= 0);
  return groups.map(({ name, value }) => ({
    name,
    value,
    text: figureText(value),
    share: isWhole && sum > 0 ? shareText(value / sum) : '',
  }));
}
