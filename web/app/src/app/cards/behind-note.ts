import { Component, computed, inject, input } from '@angular/core';
import { behindText } from '../board/board-texts';
import { BoardPulse } from '../board-pulse';

/** Says so when a view is seconds behind the tables that it is made of. */
@Component({
  selector: 'app-behind-note',
  template: `
    @if (text(); as behind) {
      <p class="notice" role="status">{{ behind }}</p>
    }
  `,
})
export class BehindNote {
  readonly table = input.required<string>();

  private readonly pulse = inject(BoardPulse);
  protected readonly text = computed(() => behindText(this.pulse.latest()?.behind?.[this.table()]));
}
