import { Component, inject, input } from '@angular/core';
import { RouterLink } from '@angular/router';
import { BehindNote } from '../cards/behind-note';
import { EMBEDDED } from '../embedded';
import { LiveTable } from '../live-table/live-table';

/** One table over the whole page, such as for a wall screen. */
@Component({
  selector: 'app-table-page',
  imports: [BehindNote, LiveTable, RouterLink],
  template: `
    <app-behind-note [table]="name()" />
    <app-live-table [tableName]="name()">
      @if (!isEmbedded) {
        <a class="button" routerLink="/" queryParamsHandling="merge" aria-label="Back to the board">←</a>
      }
    </app-live-table>
  `,
  styles: `
    :host {
      display: flex;
      flex: 1;
      flex-direction: column;
      min-height: 24rem;
    }

    app-live-table {
      flex: 1;
      height: auto;
    }

    a {
      text-decoration: none;
    }
  `,
})
export class TablePage {
  readonly name = input.required<string>();

  protected readonly isEmbedded = inject(EMBEDDED);
}
