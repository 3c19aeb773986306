import { Injectable, effect, signal } from '@angular/core';
import { keep, kept } from './storage';

export type Theme = 'light' | 'dark';

const STORED_THEME = 'liveboard.theme';

/** Light or dark: what the viewer chose, otherwise what the system prefers. */
@Injectable({ providedIn: 'root' })
export class ThemeChoice {
  private readonly chosen = signal<Theme>(stored() ?? preferred());

  readonly theme = this.chosen.asReadonly();

  constructor() {
    effect(() => {
      const { dataset } = document.documentElement;
      dataset.theme = this.theme();
      dataset.agThemeMode = this.theme();
    });
  }

  /** The other one, from now on. */
  toggle(): void {
    this.chosen.update((theme) => (theme === 'dark' ? 'light' : 'dark'));
    keep('localStorage', STORED_THEME, this.chosen());
  }
}

function stored(): Theme | null {
  const text = kept('localStorage', STORED_THEME);
  return text === 'light' || text === 'dark' ? text : null;
}

function preferred(): Theme {
  return matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light';
}
