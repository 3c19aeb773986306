import { inject, Injectable } from '@angular/core';
import type { Query, TableInfo } from 'table-hub';
import { SERVER_ADDRESS } from './server-address';
import { Session } from './session';

export type ExportFormat = 'csv' | 'parquet';

/** What there is to draw of a column. */
export interface ChartData {
  readonly column: string;
  readonly rows: number;
  readonly distribution: { readonly low: number; readonly high: number; readonly counts: readonly number[] } | null;
  readonly series: readonly { at: number; least: number; mean: number; greatest: number }[];
  readonly frequencies: readonly { value: string | null; rows: number }[];
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

  /** The topics that a source may read. */
  async topics(): Promise<string[]> {
    return (await this.json<{ topics: string[] }>('api/topics')).topics;
  }

  /** Sends a control message. */
  async control(message: Record<string, string>): Promise<void> {
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
