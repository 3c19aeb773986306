import { Component, ElementRef, effect, input, viewChild } from '@angular/core';
import {
  BarController,
  BarElement,
  CategoryScale,
  Chart,
  Filler,
  Legend,
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
  Legend,
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
  template: '<canvas #canvas role="img" [attr.aria-label]="drawing().title"></canvas>',
  styles: `
    :host {
      display: block;
      position: relative;
      height: 14rem;
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
