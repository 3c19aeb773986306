import { Injectable, signal } from '@angular/core';

/** A row that is looked at. */
export interface OpenRow {
  readonly table: string;
  readonly key: string;
  /** Where the focus goes back to; null where it has stayed, after a click. */
  readonly from: HTMLElement | null;
}

/** Which row is shown whole, if any; grids open it. */
@Injectable({ providedIn: 'root' })
export class RowDetails {
  private readonly shown = signal<OpenRow | null>(null);

  readonly row = this.shown.asReadonly();

  /** A click opens the row; one that selects several rows does not. */
  clicked(table: string, key: string | undefined, event: Event | null | undefined): void {
    if (event instanceof MouseEvent && (event.ctrlKey || event.metaKey || event.shiftKey)) return;
    if (key !== undefined) this.shown.set({ table, key, from: null });
  }

  /** Enter opens the row, and the focus goes into it. */
  pressed(table: string, key: string | undefined, event: Event | null | undefined): void {
    if (!(event instanceof KeyboardEvent) || key === undefined) return;
    if (event.key === 'Escape') this.close();
    const from = event.target instanceof HTMLElement ? event.target : null;
    if (event.key === 'Enter' && !event.ctrlKey && !event.metaKey) this.shown.set({ table, key, from });
  }

  /** Closes it; the focus goes back to where it was. */
  close(): void {
    const from = this.shown()?.from;
    this.shown.set(null);
    from?.focus();
  }
}
