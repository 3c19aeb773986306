import {
  Component,
  ElementRef,
  afterNextRender,
  computed,
  input,
  linkedSignal,
  output,
  viewChild,
} from '@angular/core';
import type { TableInfo } from 'table-hub';
import { CARD_KINDS, type Card, type CardKind, MEASURES, type Measure, card, cardTitle, fits } from './layout';

const KIND_TEXTS: Record<CardKind, string> = {
  table: 'Table',
  number: 'One big number',
  line: 'Line over time',
  bars: 'Bars',
  distribution: 'Distribution',
  top: 'Top values',
  groups: 'Groups with a number',
};

/** Asks what a card shows. */
@Component({
  selector: 'app-card-editor',
  template: `
    <dialog #dialog aria-labelledby="card-editor-title" (close)="closed.emit()">
      <form (submit)="finish($event)">
        <h2 id="card-editor-title">{{ card() === null ? 'Add a card' : 'Edit the card' }}</h2>
        <label for="card-kind">What</label>
        <select #kindChoice id="card-kind" (change)="chooseKind(kindChoice.value)">
          @for (each of kinds; track each) {
            <option [value]="each" [selected]="each === kind()">{{ texts[each] }}</option>
          }
        </select>
        <label for="card-table">Table</label>
        <select #tableChoice id="card-table" (change)="table.set(tableChoice.value)">
          @for (each of tables(); track each.name) {
            <option [value]="each.name" [selected]="each.name === table()">{{ each.name }}</option>
          }
        </select>
        @if (kind() === 'number') {
          <label for="card-measure">Number</label>
          <select #measureChoice id="card-measure" (change)="chooseMeasure(measureChoice.value)">
            @for (each of measures; track each) {
              <option [value]="each" [selected]="each === measure()" [disabled]="each !== 'rows' && !columns().length">
                {{ each }}
              </option>
            }
          </select>
        }
        @if (needsColumn()) {
          <label for="card-column">Column</label>
          <select #columnChoice id="card-column" (change)="column.set(columnChoice.value)">
            @for (each of columns(); track each) {
              <option [value]="each" [selected]="each === column()">{{ each }}</option>
            }
          </select>
        }
        <p class="quiet" role="status">{{ problem() || title() }}</p>
        <div class="answers">
          <button type="button" (click)="dialog.close()">Cancel</button>
          <button type="submit" class="primary" [disabled]="problem() !== ''">
            {{ card() === null ? 'Add' : 'Change' }}
          </button>
        </div>
      </form>
    </dialog>
  `,
  styles: `
    dialog {
      width: min(26rem, calc(100vw - 1rem));
    }

    form {
      display: grid;
      grid-template-columns: auto 1fr;
      align-items: center;
      gap: var(--gap-m);
    }

    h2,
    p,
    .answers {
      grid-column: 1 / -1;
    }

    h2 {
      font-size: var(--size-l);
    }

    p {
      min-height: 1.4em;
    }
  `,
})
export class CardEditor {
  readonly tables = input.required<readonly TableInfo[]>();
  /** The card to change; null for a new one. */
  readonly card = input.required<Card | null>();
  readonly done = output<Card>();
  readonly closed = output();

  private readonly dialog = viewChild.required<ElementRef<HTMLDialogElement>>('dialog');
  protected readonly kinds = CARD_KINDS;
  protected readonly measures = MEASURES;
  protected readonly texts = KIND_TEXTS;
  protected readonly kind = linkedSignal<CardKind>(() => this.card()?.kind ?? 'line');
  protected readonly table = linkedSignal(() => this.card()?.table ?? this.tables()[0]?.name ?? '');
  protected readonly measure = linkedSignal<Measure>(() => this.card()?.measure ?? 'rows');
  protected readonly needsColumn = computed(
    () => this.kind() !== 'table' && !(this.kind() === 'number' && this.measure() === 'rows'),
  );
  protected readonly columns = computed(() => {
    const columns = this.tables().find(({ name }) => name === this.table())?.columns ?? [];
    return columns.filter((column) => fits(this.kind(), column)).map(({ name }) => name);
  });
  protected readonly column = linkedSignal<readonly string[], string>({
    source: this.columns,
    computation: (columns, before) => {
      const wanted = before?.value ?? this.card()?.column ?? '';
      return columns.includes(wanted) ? wanted : (columns.at(0) ?? '');
    },
  });
  protected readonly problem = computed(() =>
    this.needsColumn() && this.columns().length === 0
      ? `${this.table()} has no column for this: choose another table.`
      : '',
  );
  protected readonly title = computed(() => cardTitle(this.made(), this.tables()));

  constructor() {
    afterNextRender(() => {
      this.dialog().nativeElement.showModal();
    });
  }

  protected chooseKind(text: string): void {
    this.kind.set(CARD_KINDS.find((kind) => kind === text) ?? 'table');
  }

  protected chooseMeasure(text: string): void {
    this.measure.set(MEASURES.find((measure) => measure === text) ?? 'rows');
  }

  protected finish(event: Event): void {
    event.preventDefault();
    this.done.emit(this.made());
  }

  private made(): Card {
    const before = this.card();
    const kind = this.kind();
    const made = card(kind, this.table(), {
      column: this.needsColumn() ? this.column() : '',
      measure: kind === 'number' ? this.measure() : 'rows',
    });
    if (before === null) return made;
    const size = before.kind === kind ? { width: before.width, height: before.height } : {};
    return { ...made, ...size, query: before.table === made.table ? before.query : '' };
  }
}
