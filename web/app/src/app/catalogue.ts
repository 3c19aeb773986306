import { Injectable, inject, linkedSignal } from '@angular/core';
import type { Column, TableInfo } from 'table-hub';
import { Session } from './session';

/** The tables of the board, as they were last heard of. */
@Injectable({ providedIn: 'root' })
export class Catalogue {
  private readonly session = inject(Session);
  private readonly heard = linkedSignal<readonly TableInfo[]>(() => this.session.hub()?.tables ?? [], {
    equal: (one, other) => described(one) === described(other),
  });
  private generation = '';

  readonly tables = this.heard.asReadonly();

  /**
   * Hears of the tables that there are now. A generation does not lose any: what is missing of it is still being
   * loaded by a server that has just started. Only views come and go while it lives.
   */
  take(tables: readonly TableInfo[], generation: string): void {
    const isSame = generation === this.generation || generation === '';
    this.generation = generation || this.generation;
    this.heard.update((before) =>
      isSame
        ? merged(
            before.filter(({ kind }) => kind !== 'view'),
            tables,
          )
        : tables,
    );
  }

  /** Whether its rows come one after the other: those of a view stand where its statement puts them. */
  isInTime(table: string, columns: readonly Column[]): boolean {
    const isView = this.tables().some(({ name, kind }) => name === table && kind === 'view');
    return !isView && columns.some(({ name, type }) => name === 'ts' && type === 'timestamp');
  }
}

/** All tables of both, as the second has them, or else the first; in the order of the one that has more. */
export function merged(before: readonly TableInfo[], after: readonly TableInfo[]): readonly TableInfo[] {
  const known = new Map([...before, ...after].map((table) => [table.name, table]));
  const [first, second] = after.length >= before.length ? [after, before] : [before, after];
  const names = new Set([...first, ...second].map(({ name }) => name));
  return [...names].flatMap((name) => known.get(name) ?? []);
}

/** All but how many rows there are, which changes at every moment. */
function described(tables: readonly TableInfo[]): string {
  return JSON.stringify(tables.map(({ name, kind, columns }) => [name, kind, columns]));
}
