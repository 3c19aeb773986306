import { Injectable, inject } from '@angular/core';
import { Address } from '../views/address';

/** The address's parameter that has the view of a table. */
export function viewParameter(table: string): string {
  return `view.${table}`;
}

/** The views of the tables, each a parameter of the address under its table's name, on every page of the board. */
@Injectable({ providedIn: 'root' })
export class ViewAddress {
  private readonly address = inject(Address);

  /** The view's text as the address has it or is about to have it. */
  read(table: string): string {
    return this.address.read(viewParameter(table)) ?? '';
  }

  /** Puts a view's text into the address, soon; Back leads to the page before and not to the view before. */
  write(table: string, text: string): void {
    this.address.write(viewParameter(table), text);
  }
}
