import { Component, ElementRef, computed, effect, inject, input, signal, untracked, viewChild } from '@angular/core';
import { copyText } from '../live-table/copy';
import { shown } from '../live-table/values';
import { type Explained, ServerApi, type SourceRecord } from '../server-api';
import { joinSentence, pretty } from './pretty';
import { type OpenRow, RowDetails } from './row-details';

/** A row with every field whole, and the source records that it was made of. */
@Component({
  selector: 'app-row-detail',
  templateUrl: './row-detail.html',
  styleUrl: './row-detail.css',
  host: { '(keydown.escape)': 'details.close()' },
})
export class RowDetail {
  readonly row = input.required<OpenRow>();

  protected readonly details = inject(RowDetails);
  private readonly server = inject(ServerApi);
  private readonly heading = viewChild.required<ElementRef<HTMLElement>>('heading');

  protected readonly explained = signal<Explained | null>(null);
  protected readonly problem = signal('');
  protected readonly note = signal('');
  protected readonly fields = computed(() => {
    const { columns, row } = this.explained() ?? { columns: [], row: [] };
    return columns.map(({ name, type }, place) => ({
      name,
      type,
      isNull: row[place] === null,
      text: pretty(shown(row[place], type)),
    }));
  });
  protected readonly join = computed(() => {
    const explained = this.explained();
    const [left, right] = explained?.sources ?? [];
    if (!explained?.how || !left?.source || !right?.source) return '';
    return joinSentence(explained.how, explained.on, left.source, right.source);
  });

  constructor() {
    effect(() => {
      const row = this.row();
      untracked(() => void this.look(row));
    });
    effect(() => {
      if (this.row().from !== null) this.heading().nativeElement.focus();
    });
  }

  protected async look(row: OpenRow): Promise<void> {
    this.note.set('');
    try {
      const explained = await this.server.explained(row.table, row.key);
      if (row !== this.row()) return;
      this.explained.set(explained);
      this.problem.set('');
    } catch (error) {
      if (row !== this.row()) return;
      this.explained.set(null);
      this.problem.set(error instanceof Error ? error.message : String(error));
    }
  }

  protected place({ topic, partition, offset }: SourceRecord): string {
    return partition === undefined ? (topic ?? '') : `${topic ?? ''} · partition ${partition} · offset ${offset ?? ''}`;
  }

  protected time(ts: string): string {
    return shown(ts, 'timestamp');
  }

  protected readonly pretty = pretty;

  protected async copy(text: string): Promise<void> {
    try {
      await copyText(text);
      this.note.set('Copied.');
    } catch {
      this.note.set('The browser did not let it onto the clipboard.');
    }
  }
}
