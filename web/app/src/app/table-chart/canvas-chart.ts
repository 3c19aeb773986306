import { Component, ElementRef, effect, input, viewChild } from '@angular/core';
import {
  BarController,
  BarElement,
  CategoryScale,
  Chart,
  Filler,
  LineController,
  LineElement,
  LinearScale,
  PointElement,
  Tooltip,
} from 'chart.js';
import type { Drawing } from './drawings';

Chart.register(
  BarController,
  BarElement,
  CategoryScale,
  Filler,
  LineController,
  LineElement,
  LinearScale,
  PointElement,
  Tooltip,
);

/** Of the root's. */
const FONT_SIZE = 0.86;

/** One picture, changed in place when there are newer figures. */
@Component({
  selector: 'app-canvas-chart',
  template: `
    @if (drawing().legend.length) {
      <p class="legend">
        @for (each of drawing().legend; track each.text) {
          <span [class]="each.mark">{{ each.text }}</span>
        }
      </p>
    }
    <div><canvas #canvas role="img" [attr.aria-label]="drawing().title"></canvas></div>
  `,
  styles: `
    :host {
      display: flex;
      flex-direction: column;
      height: 14rem;
    }

    div {
      position: relative;
      flex: 1;
      min-height: 0;
    }

    .legend {
      display: flex;
      justify-content: end;
      gap: var(--gap-m);
      color: var(--quiet);
      font-size: var(--size-s);
    }

    .legend > span::before {
      display: inline-block;
      width: 1.6em;
      margin-right: var(--gap-xs);
      background: var(--accent);
      content: '';
      vertical-align: middle;
    }

    .line::before {
      height: 2px;
    }

    .band::before {
      height: 0.6em;
      opacity: 0.2;
    }
  `,
})
export class CanvasChart {
  readonly drawing = input.required<Drawing>();

  private readonly canvas = viewChild.required<ElementRef<HTMLCanvasElement>>('canvas');
  private chart: Chart<'bar' | 'line'> | null = null;

  constructor() {
    effect(() => {
      const { configuration } = this.drawing();
      const { fontFamily, fontSize } = getComputedStyle(document.documentElement);
      Chart.defaults.font.family = fontFamily;
      Chart.defaults.font.size = FONT_SIZE * parseFloat(fontSize);
      if (this.chart === null) {
        this.chart = new Chart(this.canvas().nativeElement, configuration);
        return;
      }
      this.chart.data = configuration.data;
      this.chart.options = configuration.options ?? {};
      this.chart.update();
    });
    effect((onCleanup) => {
      this.canvas();
      onCleanup(() => this.chart?.destroy());
    });
  }
}
