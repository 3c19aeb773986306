import { Component, computed, input, output, signal } from '@angular/core';
import type { Column, Query } from 'table-hub';
import type { ExportFormat } from '../server-api';
import { TableChart } from '../table-chart/table-chart';
import { TableViews } from '../views/table-views';
import { ColumnSettings } from './column-settings';
import type { Format, Rule, ViewState } from './view-state';

let instances = 0;

/** What one can do with a table: choose and format columns, take rows out, draw them, keep the view. */
@Component({
  selector: 'app-table-tools',
  imports: [ColumnSettings, TableChart, TableViews],
  templateUrl: './table-tools.html',
  styles: `
    .column {
      display: flex;
      align-items: center;
      justify-content: space-between;
      gap: var(--gap-m);
    }

    .column > .small {
      min-height: 1.6rem;
      padding-block: 0;
      font-size: var(--size-s);
    }
  `,
  host: { class: 'bare', role: 'group', '[attr.aria-label]': "'Tools of ' + table()" },
})
export class TableTools {
  readonly table = input.required<string>();
  readonly columns = input.required<readonly Column[]>();
  readonly view = input.required<ViewState>();
  readonly query = input.required<Query>();
  readonly changed = output<Partial<ViewState>>();
  /** All that was set up is to be taken away. */
  readonly cleared = output();
  readonly exported = output<ExportFormat>();
  readonly copied = output();

  protected readonly id = `table-tools-${++instances}`;
  protected readonly isCharted = signal(false);
  /** The column whose format and rules are being set up. */
  protected readonly formatted = signal<string | null>(null);
  protected readonly formattedColumn = computed(() => this.columns().find(({ name }) => name === this.formatted()));
  protected readonly isNarrowed = computed(() => !!this.query().filter?.length || !!this.query().search);

  protected toggleColumn(name: string, isShown: boolean): void {
    const others = this.view().hidden.filter((each) => each !== name);
    this.changed.emit({ hidden: isShown ? others : [...others, name] });
  }

  protected setUp(column: string, format: Format | null, rules: readonly Rule[]): void {
    const without = <T>(all: Readonly<Record<string, T>>): Record<string, T> =>
      Object.fromEntries(Object.entries(all).filter(([name]) => name !== column));
    const { formats, rules: allRules } = this.view();
    this.changed.emit({
      formats: { ...without(formats), ...(format && { [column]: format }) },
      rules: { ...without(allRules), ...(rules.length && { [column]: rules }) },
    });
  }
}
