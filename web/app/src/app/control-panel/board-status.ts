import type { TableUpdate, Value } from 'table-hub';

const TOPIC_COLUMN = /^(.+)Topic$/;
const PROGRESS = /^building (g\d+): (\d+) %/;

/** A source of the board and the topic that it reads. */
export interface SourceTopic {
  readonly source: string;
  readonly field: string;
  readonly topic: string;
}

/** The row of orchestrator_status. */
export interface BoardStatus {
  readonly sources: readonly SourceTopic[];
  readonly joinType: string;
  readonly generation: string;
  readonly phase: string;
  readonly message: string;
  readonly lastApplied: string;
}

/** A control message and what became of it. */
export interface ControlRecord {
  readonly key: string;
  readonly ts: string;
  readonly verdict: string;
  readonly reason: string;
  readonly message: string;
}

/** The status in an update of the table orchestrator_status; null while there is none. */
export function boardStatus(update: TableUpdate): BoardStatus | null {
  const [row] = records(update);
  if (row === undefined) return null;
  const sources = update.columns.flatMap(({ name }) => {
    const source = TOPIC_COLUMN.exec(name)?.[1];
    return source === undefined ? [] : [{ source, field: name, topic: text(row[name]) }];
  });
  return {
    sources,
    joinType: text(row.joinType),
    generation: text(row.generation),
    phase: text(row.phase),
    message: text(row.message),
    lastApplied: text(row.lastApplied),
  };
}

/** The records in an update of the table control_raw. */
export function controlRecords(update: TableUpdate): ControlRecord[] {
  return records(update).map((row, place) => ({
    key: update.keys[place] ?? '',
    ts: text(row.ts),
    verdict: text(row.verdict),
    reason: text(row.reason),
    message: text(row.message),
  }));
}

/** How far the build is that a status message tells of, in percent. */
export function buildProgress(message: string): { generation: string; percent: number } | null {
  const found = PROGRESS.exec(message);
  return found === null ? null : { generation: found[1] ?? '', percent: Number(found[2]) };
}

function records({ columns, rows }: TableUpdate): Record<string, Value | undefined>[] {
  return rows.map((row) => Object.fromEntries(columns.map(({ name }, place) => [name, row[place]])));
}

function text(value: Value | undefined): string {
  return value === null || value === undefined ? '' : String(value);
}
