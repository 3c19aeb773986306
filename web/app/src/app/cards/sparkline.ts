import { Component, computed, input } from '@angular/core';

const WIDTH = 100;
const HEIGHT = 30;

/** Points of a line through the values, from left to right; from zero the height tells, otherwise only the way. */
export function points(values: readonly number[], isFromZero = true): string {
  const ends = isFromZero ? [...values, 0] : values;
  const top = Math.max(...ends);
  const low = Math.min(...ends);
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
      container-type: inline-size;
      display: block;
      min-width: 0;
    }

    /* Where there is no room for a way, the number is enough. */
    @container (width < 3rem) {
      svg {
        visibility: hidden;
      }
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
  readonly isFromZero = input(true);

  protected readonly line = computed(() => points(this.values(), this.isFromZero()));
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}
