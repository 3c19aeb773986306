import { Component, computed, inject, input } from '@angular/core';
import { RouterLink } from '@angular/router';
import { rejectedText, rejectsOf } from '../board/board-texts';
import { BoardPulse } from '../board-pulse';

/** Says so when the records of a table's source are nearly all rejected. */
@Component({
  selector: 'app-rejected-note',
  imports: [RouterLink],
  template: `
    @if (found(); as bad) {
      <p role="status">
        {{ bad.text }}
        <a
          routerLink="/table/rejects_ui"
          [queryParams]="rejectsOf(bad.topic)"
          [attr.aria-label]="'Look at the rejects of ' + bad.source"
          >→ look</a
        >
      </p>
    }
  `,
  styles: `
    p {
      margin-bottom: var(--gap-xs);
      padding: var(--gap-xs) var(--gap-m);
      border: 1px solid var(--bad);
      border-radius: var(--round);
      background: color-mix(in srgb, var(--bad) 10%, var(--card));
      overflow-wrap: anywhere;
    }
  `,
})
export class RejectedNote {
  readonly table = input.required<string>();

  private readonly pulse = inject(BoardPulse);
  protected readonly rejectsOf = rejectsOf;
  protected readonly found = computed(() => {
    const source = this.pulse.latest()?.sources.find(({ table }) => table === this.table());
    return source ? rejectedText(source) : null;
  });
}
