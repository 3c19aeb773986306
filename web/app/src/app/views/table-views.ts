import { Component, computed, effect, inject, input, untracked } from '@angular/core';
import { EMBEDDED } from '../embedded';
import { ViewAddress } from '../live-table/view-address';
import { SavedMenu } from './saved-menu';
import { type Kept, SavedViews, defaultName, effective } from './saved-views';

/** The menu of a table's named views; a table that is opened without a view begins with its default one. */
@Component({
  selector: 'app-table-views',
  imports: [SavedMenu],
  template: `
    @if (!isEmbedded) {
      <app-saved-menu kind="view" [table]="table()" [state]="state" [current]="current()" (opened)="open($event)" />
    }
  `,
  styles: `
    :host {
      display: contents;
    }
  `,
})
export class TableViews {
  readonly table = input.required<string>();

  private readonly address = inject(ViewAddress);
  private readonly saved = inject(SavedViews);

  protected readonly isEmbedded = inject(EMBEDDED);
  protected readonly state = (): string => this.address.read(this.table());
  protected readonly current = computed(() => {
    const text = this.state();
    return effective(this.saved.all(), 'view', this.table()).find(({ state }) => state === text)?.name ?? '';
  });

  constructor() {
    let begun = '';
    effect(() => {
      const table = this.table();
      if (!this.saved.isKnown() || begun === table) return;
      begun = table;
      untracked(() => {
        const all = this.saved.all();
        const first = effective(all, 'view', table).find(({ name }) => name === defaultName(all, table));
        if (first && this.state() === '') this.open(first);
      });
    });
  }

  protected open(kept: Kept | null): void {
    this.address.write(this.table(), typeof kept?.state === 'string' ? kept.state : '');
  }
}
