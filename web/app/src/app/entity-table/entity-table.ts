import { Component, computed, inject, input } from '@angular/core';
import { RouterLink } from '@angular/router';
import { LiveTable } from '../live-table/live-table';
import { Catalogue } from '../catalogue';
import { LASTING_TABLES } from '../own-tables';

const TABLE_OF_ENTITY: ReadonlyMap<string, string> = new Map([
  ['user', 'users_ui'],
  ['account', 'accounts_ui'],
]);
const PAGE_SIZE = 300;
const JOINED_TABLE = 'final_ui';

/** The table of an entity: users, accounts, and for everything else what they are joined to. */
export function tableOfEntity(name: string): string {
  return TABLE_OF_ENTITY.get(name) ?? JOINED_TABLE;
}

/** Live tables, named by what they are about: a list, or in an attribute or an address a text such as "user,account". */
@Component({
  selector: 'app-entity-table',
  imports: [LiveTable, RouterLink],
  template: `
    @for (entity of entities(); track $index) {
      @if (entity.isThere) {
        <app-live-table [tableName]="entity.table" [pageSize]="pageSize()" />
      } @else {
        <p class="missing framed" role="status">
          There is no entity “{{ entity.name }}” on this board: it has no table {{ entity.table }}. There is:
          {{ known().join(', ') }}. <a routerLink="/">To the board</a>
        </p>
      }
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

    .missing {
      align-self: start;
      padding: 1rem;
    }
  `,
})
export class EntityTable {
  readonly tableNames = input.required<readonly string[], string | readonly string[]>({ transform: listed });
  /** The router binds what an address does not have as undefined. */
  readonly pageSize = input(PAGE_SIZE, { transform: (size: number | undefined) => size ?? PAGE_SIZE });

  private readonly catalogue = inject(Catalogue);
  /** Those of a generation; a board that has none yet is waited for. */
  protected readonly known = computed(() => {
    const names = this.catalogue.tables().map(({ name }) => name);
    return names.filter((name) => !LASTING_TABLES.has(name));
  });
  protected readonly entities = computed(() =>
    this.tableNames().map((name) => {
      const table = tableOfEntity(name);
      return { name, table, isThere: this.known().length === 0 || this.known().includes(table) };
    }),
  );
}

function listed(names: string | readonly string[]): readonly string[] {
  return typeof names === 'string' ? names.split(',') : names;
}
