import { inject, Injectable } from '@angular/core';
import type { Column, Query, Row, TableInfo } from 'table-hub';
import type { ControlMessage } from './control-panel/board-status';
import { SERVER_ADDRESS } from './server-address';
import { Session } from './session';
import type { Kept, Place } from './views/saved-views';

export type ExportFormat = 'csv' | 'parquet';

/** How many rows have a value in each bin between the least and the greatest, and what the values come to. */
export interface Distribution {
  readonly low: number;
  readonly high: number;
  readonly counts: readonly number[];
  readonly mean: number;
  /** Null where it is too large for a number. */
  readonly sum: number | null;
}

/** What there is to draw of a column. */
export interface ChartData {
  readonly column: string;
  readonly rows: number;
  readonly distribution: Distribution | null;
  readonly series: readonly { at: number; least: number; mean: number; greatest: number }[];
  readonly frequencies: readonly { value: string | null; rows: number }[];
}

/** A record that a row was made of; what is not known or not shown is left out, and `note` says why. */
export interface SourceRecord {
  readonly source?: string;
  readonly topic?: string;
  readonly partition?: number;
  readonly offset?: number;
  readonly ts?: string;
  readonly key?: string;
  readonly value?: string;
  readonly encoding?: 'base64';
  readonly note?: string;
}

/** A row, whole, and where it comes from. */
export interface Explained {
  readonly table: string;
  readonly generation: string | null;
  readonly key: string;
  readonly columns: readonly Column[];
  readonly row: Row;
  readonly how: string;
  readonly on: string;
  readonly sources: readonly SourceRecord[];
  readonly hidden: number;
  readonly note: string;
}

/** What came of one source; the rejects are null for keys that do not show them. */
export interface SourcePulse {
  readonly source: string;
  readonly table: string;
  readonly topic: string | null;
  readonly rows: number;
  readonly rejected: number | null;
  readonly reason: string | null;
}

/** The board at one moment of the server's clock. */
export interface Pulse {
  readonly time: number;
  readonly generation: string | null;
  readonly events: number;
  readonly sources: readonly SourcePulse[];
  /** How many alerts are raised; null where there are none to show. */
  readonly alerts: number | null;
  /** By how many seconds views that are being looked at are behind their tables. */
  readonly behind?: Readonly<Record<string, number>>;
}

/** What some of a topic's records would bring to a source. */
export interface Preview {
  readonly source: string;
  readonly topic: string;
  readonly records: number;
  readonly sampled: number;
  readonly fitting: number;
  readonly reasons: readonly string[];
  readonly columns: readonly string[];
  readonly empty: readonly string[];
}

/** What a control message can choose from. */
export interface Choices {
  readonly topics: readonly string[];
  readonly joinKinds: readonly string[];
}

/** What the page asks the server over HTTP; what fails says why in one sentence. */
@Injectable({ providedIn: 'root' })
export class ServerApi {
  private readonly server = inject(SERVER_ADDRESS);
  private readonly session = inject(Session);

  /** The tables of the board, as they are now. */
  async tables(): Promise<TableInfo[]> {
    return (await this.json<{ tables: TableInfo[] }>('api/tables')).tables;
  }

  /** What a control message can choose from: the topics that a source may read, and the kinds of joins. */
  async choices(): Promise<Choices> {
    return this.json<Choices>('api/topics');
  }

  /** Sends a control message. */
  async control(message: ControlMessage): Promise<void> {
    await this.request('api/control', { method: 'POST', body: JSON.stringify(message) });
  }

  /** All rows of a table that a query lets through, as a file. */
  async exported(table: string, format: ExportFormat, query: Query): Promise<Blob> {
    const parameters = narrowing(query);
    parameters.set('format', format);
    if (query.sort?.length) parameters.set('sort', JSON.stringify(query.sort));
    return (await this.request(`api/tables/${table}/export?${parameters.toString()}`)).blob();
  }

  /** What there is to draw of a column, over all rows that a query lets through. */
  async chart(table: string, column: string, query: Query): Promise<ChartData> {
    const parameters = narrowing(query);
    parameters.set('column', column);
    return this.json<ChartData>(`api/tables/${table}/chart?${parameters.toString()}`);
  }

  /** The views and boards that the key sees. */
  async saved(): Promise<Kept[]> {
    return (await this.json<{ views: Kept[] }>('api/views')).views;
  }

  /** Keeps a view or a board. */
  async keep(place: Place, tables: readonly string[], state: unknown): Promise<void> {
    await this.request(placed(place), { method: 'PUT', body: JSON.stringify({ tables, state }) });
  }

  /** Removes a view or a board. */
  async remove(place: Place): Promise<void> {
    await this.request(placed(place), { method: 'DELETE' });
  }

  /** A row and the source records that it was made of. */
  async explained(table: string, key: string): Promise<Explained> {
    return this.json<Explained>(`api/tables/${table}/row?${new URLSearchParams({ key }).toString()}`);
  }

  /** How many events came, and what was rejected. */
  async pulse(): Promise<Pulse> {
    return this.json<Pulse>('api/pulse');
  }

  /** What a topic would bring to a source. */
  async preview(source: string, topic: string): Promise<Preview> {
    return this.json<Preview>(`api/preview?${new URLSearchParams({ source, topic }).toString()}`);
  }

  private async json<Answer>(path: string): Promise<Answer> {
    return (await (await this.request(path)).json()) as Answer;
  }

  private async request(path: string, init: RequestInit = {}): Promise<Response> {
    const headers = { Authorization: `Bearer ${this.session.key() ?? ''}` };
    const response = await fetch(new URL(path, this.server), { ...init, headers });
    if (!response.ok) throw new Error(await reason(response));
    return response;
  }
}

function placed({ kind, table, name, shared }: Place): string {
  return `api/views?${new URLSearchParams({ kind, table, name, shared: String(shared) }).toString()}`;
}

function narrowing(query: Query): URLSearchParams {
  const parameters = new URLSearchParams();
  if (query.filter?.length) parameters.set('filter', JSON.stringify(query.filter));
  if (query.search) parameters.set('search', query.search);
  return parameters;
}

async function reason(response: Response): Promise<string> {
  try {
    return ((await response.json()) as { error: { message: string } }).error.message;
  } catch {
    return `expected an answer from the server, found ${response.status} ${response.statusText}`;
  }
}
