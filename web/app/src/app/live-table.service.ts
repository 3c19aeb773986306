import { inject, Injectable } from '@angular/core';
import type { Query, Subscription, TableHub, TableUpdate, WindowQuery } from 'table-hub';
import { Catalogue } from './catalogue';
import { Latency } from './latency';
import { Session } from './session';

/** Live tables for components: one connection, one subscription on the wire however many look at the same window. */
@Injectable({ providedIn: 'root' })
export class LiveTableService {
  private readonly session = inject(Session);
  private readonly catalogue = inject(Catalogue);
  private readonly latency = inject(Latency);

  /** Connects with a key; whether the server takes it. */
  connect(key: string): Promise<boolean> {
    return this.session.open(key);
  }

  /** Calls the listener with the window's rows now and whenever they change. */
  subscribe(table: string, listener: (update: TableUpdate) => void, window: WindowQuery = {}): Subscription {
    const measured = (update: TableUpdate): void => {
      if (this.catalogue.isInTime(table, update.columns)) this.latency.take(update);
      listener(update);
    };
    return this.hub().subscribe(table, measured, window);
  }

  /** Moves a subscription to other rows. */
  setWindow(subscription: Subscription, offset: number, size: number, query?: Query): void {
    subscription.setWindow(offset, size, query);
  }

  /** The rows of a table as a stream that follows its name through every generation. */
  streamTableWithRebind(table: string, maxRows?: number): ReturnType<TableHub['streamTableWithRebind']> {
    return this.hub().streamTableWithRebind(table, maxRows);
  }

  private hub(): TableHub {
    const hub = this.session.hub();
    if (hub === null) throw new Error('expected a connection, found none: connect first');
    return hub;
  }
}
