import { Component, computed, input } from '@angular/core';

const SHARE = new Intl.NumberFormat('en-US', { style: 'percent', maximumFractionDigits: 1 });

/** One line of the list. */
export interface Bar {
  readonly name: string;
  readonly value: number;
  readonly text: string;
  /** Of the whole; empty where there is none. */
  readonly share: string;
}

/** Names with a number each, which is also the length of a bar. */
@Component({
  selector: 'app-bar-list',
  template: `
    <div class="scroll" tabindex="0" role="group" [attr.aria-label]="label()">
      <table [style.--rows]="rows().length">
        <tbody>
          @for (row of rows(); track row.name) {
            <tr [style.--length]="row.width">
              <th scope="row">{{ row.name }}</th>
              <td>{{ row.text }}</td>
              <td class="share">{{ row.share }}</td>
            </tr>
          }
        </tbody>
      </table>
    </div>
  `,
  styles: `
    :host {
      display: block;
    }

    .scroll {
      height: 100%;
      overflow: auto;
    }

    /* The lines share the height, and none is higher than it needs to be seen from afar. */
    table {
      width: 100%;
      height: min(100%, var(--rows) * 3.2rem);
      border-collapse: separate;
      border-spacing: 0 2px;
    }

    tr {
      background: linear-gradient(color-mix(in srgb, var(--accent) 22%, transparent) 0 0) no-repeat 0 / var(--length)
        100%;
      transition: background-size 0.4s ease-out;
    }

    th,
    td {
      padding: var(--gap-xs) var(--gap-s);
    }

    th {
      overflow-wrap: anywhere;
      font-weight: 400;
      text-align: left;
    }

    td {
      font-variant-numeric: tabular-nums;
      text-align: right;
      white-space: nowrap;
    }

    .share {
      width: 4.5em;
      color: var(--quiet);
    }

    .share:empty {
      display: none;
    }

    @media (prefers-reduced-motion: reduce) {
      tr {
        transition: none;
      }
    }
  `,
})
export class BarList {
  readonly bars = input.required<readonly Bar[]>();
  /** What the list is of, for who does not see it. */
  readonly label = input.required<string>();

  protected readonly rows = computed(() => {
    const greatest = Math.max(...this.bars().map(({ value }) => value), 0);
    return this.bars().map((bar) => ({
      ...bar,
      width: `${greatest > 0 ? (100 * Math.max(0, bar.value)) / greatest : 0}%`,
    }));
  });
}

/** What a part of the whole is, in percent. */
export function shareText(part: number): string {
  return SHARE.format(part);
}
