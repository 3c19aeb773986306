import type { TableUpdate, Value } from 'table-hub';
import { localTimes } from '../live-table/values';

const TOPIC_COLUMN = /^(.+)Topic$/;

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
  readonly build: Build | null;
}

/** How far the generation is that is being built. */
export interface Build {
  readonly generation: string;
  readonly percent: number;
}

/** What asks for another wiring; what it does not name stays as it is. */
export interface ControlMessage {
  readonly topics: Readonly<Record<string, string>>;
  readonly joinType?: string;
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
    message: localTimes(text(row.message)),
    lastApplied: text(row.lastApplied),
    build: build(text(row.building), Number(row.built ?? 0), Number(row.toBuild ?? 0)),
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

/**
 * The message that makes what is chosen, by field, of a board; where nothing is different it names all. The server's
 * contract/control.json has examples.
 */
export function controlMessage(status: BoardStatus, chosen: Readonly<Record<string, string>>): ControlMessage {
  const fields = [...status.sources.map(({ field, topic }) => [field, topic] as const), ['joinType', status.joinType]];
  const changed = fields.filter(([field, live]) => chosen[field] !== live).map(([field]) => field);
  const named = new Set(changed.length > 0 ? changed : fields.map(([field]) => field));
  const sources = status.sources.filter(({ field }) => named.has(field));
  const topics = Object.fromEntries(sources.map(({ source, field }) => [source, chosen[field] ?? '']));
  return named.has('joinType') && chosen.joinType ? { topics, joinType: chosen.joinType } : { topics };
}

function build(generation: string, built: number, toBuild: number): Build | null {
  // Without records there is nothing to build, and no part of it to tell.
  if (generation === '' || toBuild === 0) return null;
  return { generation, percent: Math.min(100, Math.floor((100 * built) / toBuild)) };
}

function records({ columns, rows }: TableUpdate): Record<string, Value | undefined>[] {
  return rows.map((row) => Object.fromEntries(columns.map(({ name }, place) => [name, row[place]])));
}

function text(value: Value | undefined): string {
  return value === null || value === undefined ? '' : String(value);
}
