import { Component, computed, input, output } from '@angular/core';
import type { Order } from 'table-hub';
import { lastPage } from './paging';

/** Turns the pages of a table, and its order. */
@Component({
  selector: 'app-table-pager',
  template: `
    @for (way of ways(); track way.name) {
      <button
        type="button"
        class="sign"
        [attr.aria-label]="way.name"
        [title]="way.title"
        [disabled]="way.isOver"
        (click)="turned.emit(way.to)"
      >
        {{ way.sign }}
      </button>
    }
    <button
      type="button"
      [disabled]="!canTurnRound()"
      [attr.aria-pressed]="order() === 'newest'"
      title="The newest rows first, or the order in which they came"
      (click)="turnedRound.emit()"
    >
      Newest first
    </button>
    <button type="button" class="sign" aria-label="Refresh" title="Refresh" (click)="refreshed.emit()">↻</button>
  `,
  styles: `
    .sign {
      min-width: 1.9rem;
      padding-inline: 0.3rem;
      font-size: 1.1em;
      line-height: 1;
    }

    :host > button[aria-pressed='true']:not(:disabled) {
      color: var(--accent);
    }
  `,
  host: { class: 'bare', role: 'group', '[attr.aria-label]': "'Pages of ' + table()" },
})
export class TablePager {
  readonly table = input.required<string>();
  readonly offset = input.required<number>();
  readonly pageSize = input.required<number>();
  readonly total = input.required<number>();
  readonly order = input.required<Order>();
  /** Whether there is an order that can be turned round. */
  readonly canTurnRound = input.required<boolean>();
  /** The first row of the page that is asked for. */
  readonly turned = output<number>();
  readonly turnedRound = output();
  readonly refreshed = output();

  protected readonly ways = computed(() => {
    const [offset, size, total] = [this.offset(), this.pageSize(), this.total()];
    const [isFirst, isLast] = [offset === 0, offset + size >= total];
    return [
      { name: 'First', sign: '«', title: 'First page', isOver: isFirst, to: 0 },
      { name: 'Prev', sign: '‹', title: 'Previous page', isOver: isFirst, to: offset - size },
      { name: 'Next', sign: '›', title: 'Next page', isOver: isLast, to: offset + size },
      { name: 'Last', sign: '»', title: 'Last page', isOver: isLast, to: lastPage(total, size) },
    ];
  });
}
