import { Component, computed, input, linkedSignal, output } from '@angular/core';
import { type Column, WIRE_TYPES } from 'table-hub';
import {
  FORMAT_KINDS,
  RULE_COLOURS,
  RULE_ICONS,
  RULE_OPERATORS,
  type Format,
  type FormatKind,
  type Rule,
} from './view-state';

const CURRENCIES = ['USD', 'EUR', 'GBP', 'CHF', 'JPY', 'CNY', 'INR'];
const NEW_RULE: Rule = { operator: '>', value: '', colour: 'bad', bold: false, icon: '', bar: false };
const KIND_NAMES: Record<FormatKind, string> = {
  number: 'number',
  money: 'money',
  percent: 'percent (0.5 is 50 %)',
  bytes: 'bytes',
  duration: 'duration (milliseconds)',
  time: 'time',
  relative: 'how long ago',
};
const TIME_KINDS: readonly FormatKind[] = ['time', 'relative'];

/** How the values of one column are written, and what makes them stand out. */
@Component({
  selector: 'app-column-settings',
  templateUrl: './column-settings.html',
  styleUrl: './column-settings.css',
})
export class ColumnSettings {
  readonly column = input.required<Column>();
  readonly format = input.required<Format | null>();
  readonly rules = input.required<readonly Rule[]>();
  readonly changed = output<{ format: Format | null; rules: readonly Rule[] }>();

  protected readonly currencies = CURRENCIES;
  protected readonly colours = RULE_COLOURS;
  protected readonly icons = RULE_ICONS;
  protected readonly kindNames = KIND_NAMES;
  protected readonly kinds = computed((): readonly FormatKind[] => {
    const { type } = this.column();
    if (type === 'timestamp') return TIME_KINDS;
    return WIRE_TYPES[type].isNumber ? FORMAT_KINDS : [];
  });
  protected readonly operators = RULE_OPERATORS;
  protected readonly ownRules = linkedSignal(() => this.rules());

  protected setKind(kind: string): void {
    const found = FORMAT_KINDS.find((each) => each === kind);
    this.tell(found ? { kind: found } : null, this.ownRules());
  }

  protected setCurrency(currency: string): void {
    this.tell({ kind: 'money', currency }, this.ownRules());
  }

  protected add(): void {
    this.setRules([...this.ownRules(), NEW_RULE]);
  }

  protected remove(place: number): void {
    this.setRules(this.ownRules().filter((_, each) => each !== place));
  }

  protected edit(place: number, changed: Partial<Record<keyof Rule, string | boolean>>): void {
    this.setRules(this.ownRules().map((rule, each) => (each === place ? ({ ...rule, ...changed } as Rule) : rule)));
  }

  private setRules(rules: readonly Rule[]): void {
    this.ownRules.set(rules);
    this.tell(this.format(), rules);
  }

  private tell(format: Format | null, rules: readonly Rule[]): void {
    this.changed.emit({ format, rules });
  }
}
