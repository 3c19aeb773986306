import { Component, computed, inject, input } from '@angular/core';
import { RouterLink } from '@angular/router';
import { rejectedText, rejectsOf } from '../board/board-texts';
import { BoardPulse } from '../board-pulse';
import { REJECTS_TABLE } from '../own-tables';

/** Says so when the records of a table's source are nearly all rejected. */
@Component({
  selector: 'app-rejected-note',
  imports: [RouterLink],
  template: `
    @if (found(); as bad) {
      <p class="notice bad" role="status">
        {{ bad.text }}
        <a
          [routerLink]="['/table', rejectsTable]"
          [queryParams]="rejectsOf(bad.topic)"
          [attr.aria-label]="'Look at the rejects of ' + bad.source"
          >→ look</a
        >
      </p>
    }
  `,
})
export class RejectedNote {
  readonly table = input.required<string>();

  private readonly pulse = inject(BoardPulse);
  protected readonly rejectsTable = REJECTS_TABLE;
  protected readonly rejectsOf = rejectsOf;
  protected readonly found = computed(() => {
    const source = this.pulse.latest()?.sources.find(({ table }) => table === this.table());
    return source ? rejectedText(source) : null;
  });
}
