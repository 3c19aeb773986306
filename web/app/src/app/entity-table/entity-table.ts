import { Component, computed, input } from '@angular/core';
import { LiveTable } from '../live-table/live-table';

const TABLE_OF_ENTITY: ReadonlyMap<string, string> = new Map([
  ['user', 'users_ui'],
  ['account', 'accounts_ui'],
]);
const JOINED_TABLE = 'final_ui';

/** The table of an entity: users, accounts, and for everything else what they are joined to. */
export function tableOfEntity(name: string): string {
  return TABLE_OF_ENTITY.get(name) ?? JOINED_TABLE;
}

/** Live tables, named by what they are about: a list, or in an attribute or an address a text such as "user,account". */
@Component({
  selector: 'app-entity-table',
  imports: [LiveTable],
  template: `
    @for (table of tables(); track $index) {
      <app-live-table [tableName]="table" [pageSize]="pageSize()" />
    }
  `,
  styles: `
    :host {
      display: grid;
      flex: 1;
      grid-auto-rows: minmax(20rem, 1fr);
      gap: 1rem;
      min-height: 100%;
    }
  `,
})
export class EntityTable {
  readonly tableNames = input.required<readonly string[], string | readonly string[]>({ transform: listed });
  readonly pageSize = input(300);

  protected readonly tables = computed(() => this.tableNames().map(tableOfEntity));
}

function listed(names: string | readonly string[]): readonly string[] {
  return typeof names === 'string' ? names.split(',') : names;
}
