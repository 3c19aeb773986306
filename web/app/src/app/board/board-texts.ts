import type { Column, WireType } from 'table-hub';
import { COUNT } from '../count';
import { viewParameter } from '../live-table/view-address';
import { PLAIN_VIEW, encodeView } from '../live-table/view-state';
import { REJECTS_TABLE } from '../own-tables';
import type { SourcePulse } from '../server-api';

/** Of which source nearly all records were rejected, and what to say about it. */
export interface Rejected {
  readonly source: string;
  readonly topic: string | null;
  readonly text: string;
}

const NEARLY_ALL = 0.9;
const EXAMPLES: Record<WireType, (name: string) => unknown> = {
  string: (name) => `${name}-1`,
  bool: () => true,
  int32: () => 1,
  int64: () => 1,
  float64: () => 1.5,
  decimal: () => '1.50',
  date: () => '2026-01-31',
  timestamp: () => '2026-01-31T09:30:00Z',
  json: () => ({}),
  binary: () => 'AAAA',
};

/** The parameter of an address that lets the rejects of one topic through, as the table's own view writes it. */
export function rejectsOf(topic: string | null): Record<string, string> {
  if (topic === null) return {};
  return { [viewParameter(REJECTS_TABLE)]: encodeView({ ...PLAIN_VIEW, filter: [['topic', '=', topic]] }) };
}

/** What is wrong with a source whose records are nearly all rejected; null where they are not. */
export function rejectedText({ source, topic, rows, rejected, reason }: SourcePulse): Rejected | null {
  if (!rejected || rejected < NEARLY_ALL * (rows + rejected)) return null;
  const counts = `${COUNT.format(rejected)} of ${COUNT.format(rows + rejected)}`;
  return { source, topic, text: `${counts} records of ${source} rejected${reason ? `: ${reason}` : ''}` };
}

/** What to say of a view that is so many seconds behind its tables; null where it is not. */
export function behindText(seconds: number | undefined): string | null {
  if (!seconds) return null;
  return `${COUNT.format(Math.round(seconds))} s behind its tables: views share a tenth of the server's time`;
}

/** The command that sends a record with a value for each column of a source. */
export function sendCommand(source: string, columns: readonly Column[]): string {
  const fields = columns.filter(({ name }) => name !== 'ts').map(({ name, type }) => [name, EXAMPLES[type](name)]);
  const record = JSON.stringify(Object.fromEntries(fields)).replaceAll("'", String.raw`'\''`);
  return `liveboard send ${source} '${record}'`;
}
