import { Component, computed, inject, input, output, signal } from '@angular/core';
import { type Kept, type SavedKind, SavedViews, defaultName, effective } from './saved-views';

let instances = 0;

/** What is kept of a table's views, or of the boards: to open, to save the current one, to share, to begin with. */
@Component({
  selector: 'app-saved-menu',
  templateUrl: './saved-menu.html',
  styleUrl: './saved-menu.css',
})
export class SavedMenu {
  readonly kind = input.required<Exclude<SavedKind, 'default'>>();
  /** Of views: whose. */
  readonly table = input('');
  /** What is shown now, to be kept under a name. */
  readonly state = input.required<() => unknown>();
  /** The tables that one must see in order to see it. */
  readonly tables = input<readonly string[]>([]);
  /** The name under which it was opened. */
  readonly current = input('');
  readonly opened = output<Kept | null>();
  readonly saved = output<string>();

  protected readonly store = inject(SavedViews);
  protected readonly id = `saved-menu-${++instances}`;
  protected readonly note = signal('');
  protected readonly what = computed(() => (this.kind() === 'view' ? 'Views' : 'Boards'));
  protected readonly whose = computed(() => (this.kind() === 'view' ? `Views of ${this.table()}` : 'Boards'));
  protected readonly list = computed(() => effective(this.store.all(), this.kind(), this.table()));
  protected readonly first = computed(() => defaultName(this.store.all(), this.table()));

  /** Whether the next one is saved for everybody. */
  protected readonly isForAll = signal(false);

  protected async save(event: Event, name: string): Promise<void> {
    event.preventDefault();
    const shared = this.isForAll();
    const place = { kind: this.kind(), table: this.table(), name: name.trim(), shared };
    const isDone = await this.tried(
      () => this.store.keep(place, this.tables(), this.state()()),
      `Saved as “${place.name}”${shared ? ' for everybody' : ''}.`,
    );
    if (isDone) this.saved.emit(place.name);
  }

  protected async share(kept: Kept): Promise<void> {
    const tables = tablesOf(kept) ?? this.tables();
    await this.tried(() => this.store.share(kept, tables), `“${kept.name}” is there for everybody now.`);
  }

  protected async toggleFirst(kept: Kept): Promise<void> {
    await this.tried(() => this.store.toggleFirst(kept), '');
  }

  protected async remove(kept: Kept): Promise<void> {
    await this.tried(() => this.store.remove(kept), `“${kept.name}” is deleted.`);
  }

  /** What is there may have changed elsewhere. */
  protected toggled(event: Event): void {
    this.note.set('');
    if ((event as ToggleEvent).newState === 'open') void this.store.load();
  }

  private async tried(act: () => Promise<void>, done: string): Promise<boolean> {
    try {
      await act();
      this.note.set(done);
      return true;
    } catch (error) {
      this.note.set(error instanceof Error ? error.message : String(error));
      return false;
    }
  }
}

/** Cards name their tables themselves. */
function tablesOf({ kind, state }: Kept): string[] | null {
  if (kind !== 'board' || !Array.isArray(state)) return null;
  return [...new Set(state.map((card: { table?: unknown }) => String(card.table)))];
}
