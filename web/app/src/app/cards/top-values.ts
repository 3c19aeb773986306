import { Component, computed, input } from '@angular/core';
import type { ChartData } from '../server-api';

const COUNT = new Intl.NumberFormat('en-US');
const SHARE = new Intl.NumberFormat('en-US', { style: 'percent', maximumFractionDigits: 1 });

/** The most frequent values of a column, each with its share of the rows. */
@Component({
  selector: 'app-top-values',
  template: `
    <div class="scroll" tabindex="0" role="group" [attr.aria-label]="'The most frequent values of ' + column()">
      <table>
        <tbody>
          @for (each of values(); track each.text) {
            <tr [style.--share]="each.width">
              <th scope="row">{{ each.text }}</th>
              <td>{{ each.rows }}</td>
              <td class="share">{{ each.share }}</td>
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

    table {
      width: 100%;
      border-collapse: separate;
      border-spacing: 0 2px;
    }

    tr {
      background: linear-gradient(color-mix(in srgb, var(--accent) 22%, transparent) 0 0) no-repeat 0 / var(--share)
        100%;
    }

    th,
    td {
      padding: 0.15rem 0.4rem;
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
  `,
})
export class TopValues {
  readonly column = input.required<string>();
  readonly data = input.required<ChartData | null>();

  protected readonly values = computed(() => {
    const data = this.data();
    const most = data?.frequencies[0]?.rows ?? 1;
    return (data?.frequencies ?? []).map(({ value, rows }) => ({
      text: value ?? '(empty)',
      rows: COUNT.format(rows),
      share: SHARE.format(rows / (data?.rows ?? 1)),
      width: `${(100 * rows) / most}%`,
    }));
  });
}
