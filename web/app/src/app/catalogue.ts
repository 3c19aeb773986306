import { Injectable, inject, linkedSignal } from '@angular/core';
import type { Column, TableInfo } from 'table-hub';
import { Session } from './session';

/** The tables of the board, as they were last heard of. */
@Injectable({ providedIn: 'root' })
export class Catalogue {
  private readonly session = inject(Session);

  readonly tables = linkedSignal<readonly TableInfo[], readonly TableInfo[]>({
    source: () => (this.session.state() === 'ready' ? (this.session.hub()?.tables ?? []) : []),
    // A server that has just started may not know them yet.
    computation: (heard, before) => (heard.length === 0 && this.session.hub() ? (before?.value ?? []) : heard),
    equal: (one, other) => described(one) === described(other),
  });

  /** Whether its rows come one after the other: those of a view stand where its statement puts them. */
  isInTime(table: string, columns: readonly Column[]): boolean {
    const isView = this.tables().some(({ name, kind }) => name === table && kind === 'view');
    return !isView && columns.some(({ name, type }) => name === 'ts' && type === 'timestamp');
  }
}

/** All but how many rows there are, which changes at every moment. */
function described(tables: readonly TableInfo[]): string {
  return JSON.stringify(tables.map(({ name, kind, columns }) => [name, kind, columns]));
}
