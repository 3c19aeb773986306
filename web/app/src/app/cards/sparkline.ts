import { Component, computed, input } from '@angular/core';

const WIDTH = 100;
const HEIGHT = 30;

/** Points of a line through the values, from left to right; from zero, so that the height tells. */
export function points(values: readonly number[]): string {
  const top = Math.max(...values, 0);
  const low = Math.min(...values, 0);
  const span = top - low || 1;
  const step = values.length > 1 ? WIDTH / (values.length - 1) : 0;
  return values
    .map((value, place) => `${round(place * step)},${round(HEIGHT - ((value - low) / span) * HEIGHT)}`)
    .join(' ');
}

/** A line without axes. */
@Component({
  selector: 'app-sparkline',
  template: `
    <svg role="img" preserveAspectRatio="none" viewBox="0 -1 100 32" [attr.aria-label]="label()">
      @if (values().length > 1) {
        <polygon [attr.points]="'0,30 ' + line() + ' 100,30'" />
        <polyline [attr.points]="line()" />
      }
    </svg>
  `,
  styles: `
    :host {
      display: block;
      min-width: 0;
    }

    svg {
      display: block;
      width: 100%;
      height: 100%;
    }

    polyline {
      fill: none;
      stroke: var(--accent);
      stroke-width: 2;
      vector-effect: non-scaling-stroke;
    }

    polygon {
      fill: color-mix(in srgb, var(--accent) 15%, transparent);
    }
  `,
})
export class Sparkline {
  readonly values = input.required<readonly number[]>();
  readonly label = input.required<string>();

  protected readonly line = computed(() => points(this.values()));
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}
