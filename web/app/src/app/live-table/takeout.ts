import { signal } from '@angular/core';
import type { TableUpdate } from 'table-hub';
import { COUNT } from '../count';
import type { ExportFormat, ServerApi } from '../server-api';
import { copyText, saveFile, tabSeparated } from './copy';
import type { Sheet } from './sheet';

/** What one takes out of a table, onto the clipboard or into a file; `note` says what became of it. */
export class Takeout {
  private readonly said = signal('');
  readonly note = this.said.asReadonly();

  constructor(private readonly server: ServerApi) {}

  /** All rows that the query lets through, as a file. */
  async export(name: string, format: ExportFormat, query: Parameters<ServerApi['exported']>[2]): Promise<void> {
    this.said.set(`Exporting ${format}…`);
    try {
      saveFile(await this.server.exported(name, format, query), `${name}.${format}`);
      this.said.set('');
    } catch (error) {
      this.said.set(`The export failed: ${error instanceof Error ? error.message : String(error)}`);
    }
  }

  /** The selected rows, or all of the page, as the sheet shows them. */
  async copyRows(sheet: Sheet, { columns, keys, rows: all }: TableUpdate): Promise<void> {
    const selected = sheet.selectedKeys;
    const head = sheet.shownColumns;
    const places = head.map((name) => columns.findIndex((column) => column.name === name));
    const rows = all.filter((_, place) => selected.size === 0 || selected.has(keys[place] ?? ''));
    const body = rows.map((row) => places.map((place) => text(sheet, columns, row, place)));
    await this.copy(
      tabSeparated([head, ...body]),
      `${COUNT.format(rows.length)} ${rows.length === 1 ? 'row' : 'rows'}`,
    );
  }

  /** Several selected rows, otherwise the cell that has the focus: a click on it selects its row as well. */
  async copyFocused(sheet: Sheet, update: TableUpdate): Promise<void> {
    const { focused } = sheet;
    if (sheet.selectedKeys.size > 1) return this.copyRows(sheet, update);
    const row = update.rows[update.keys.indexOf(focused?.key ?? '')];
    const place = update.columns.findIndex(({ name }) => name === focused?.column);
    if (row) await this.copy(text(sheet, update.columns, row, place), 'the cell');
  }

  private async copy(text: string, what: string): Promise<void> {
    try {
      await copyText(text);
      this.said.set(`Copied ${what}.`);
    } catch {
      this.said.set(`The browser did not let ${what} onto the clipboard.`);
    }
  }
}

function text(sheet: Sheet, columns: TableUpdate['columns'], row: TableUpdate['rows'][number], place: number): string {
  const column = columns[place];
  return column === undefined ? '' : sheet.text(row[place], column);
}
