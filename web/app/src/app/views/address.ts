import { Injectable, inject, signal } from '@angular/core';
import { takeUntilDestroyed } from '@angular/core/rxjs-interop';
import { NavigationEnd, Router } from '@angular/router';

/** Browsers slow down pages that change their address more often. */
const EVERY_MS = 150;

/** The parameters of the page's address. */
@Injectable({ providedIn: 'root' })
export class Address {
  private readonly router = inject(Router);
  private readonly pending = new Map<string, string>();
  private readonly visited = signal(0);
  private flushedAt = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor() {
    this.router.events.pipe(takeUntilDestroyed()).subscribe((event) => {
      if (event instanceof NavigationEnd) this.visited.update((count) => count + 1);
    });
  }

  /** The parts of the path. */
  get path(): string[] {
    this.visited();
    const found = this.router.parseUrl(this.router.url).root.children.primary;
    return found?.segments.map(({ path }) => path) ?? [];
  }

  /** A parameter as the address has it or is about to have it; null where there is none. */
  read(name: string): string | null {
    this.visited();
    const found: unknown = this.router.parseUrl(this.router.url).queryParams[name];
    const pending = this.pending.get(name);
    if (pending !== undefined) return pending || null;
    return typeof found === 'string' ? found : null;
  }

  /** Puts a parameter into the address, soon; an empty one leaves it. Back leads to the page before. */
  write(name: string, text: string): void {
    if (text === (this.read(name) ?? '')) return;
    this.pending.set(name, text);
    this.visited.update((count) => count + 1);
    // One for all of them: of two navigations at a time the router drops the first.
    const wait = Math.max(0, this.flushedAt + EVERY_MS - Date.now());
    this.timer ??= setTimeout(() => void this.flush(), wait);
  }

  private async flush(): Promise<void> {
    const texts = [...this.pending];
    this.flushedAt = Date.now();
    await this.router.navigate([], {
      queryParams: Object.fromEntries(texts.map(([name, text]) => [name, text || null])),
      queryParamsHandling: 'merge',
      replaceUrl: true,
    });
    for (const [name, text] of texts) if (this.pending.get(name) === text) this.pending.delete(name);
    this.timer = this.pending.size > 0 ? setTimeout(() => void this.flush(), EVERY_MS) : undefined;
  }
}
