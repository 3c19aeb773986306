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

/** A live table, named by what it is about. */
@Component({
  selector: 'app-entity-table',
  imports: [LiveTable],
  template: `
    @for (table of tables(); track table) {
      <app-live-table [tableName]="table" [pageSize]="pageSize()" />
    }
  `,
  styles: `
    :host {
      display: grid;
      gap: 1rem;
      height: 100%;
    }
  `,
})
export class EntityTable {
  readonly tableNames = input.required<readonly string[]>();
  readonly pageSize = input(300);

  protected readonly tables = computed(() => [...new Set(this.tableNames().map(tableOfEntity))]);
}
