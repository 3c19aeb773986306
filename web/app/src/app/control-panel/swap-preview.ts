import { COUNT } from '../count';
import type { Preview } from '../server-api';

/** One thing that a swap would change, in words. */
export interface Change {
  readonly title: string;
  readonly lines: readonly string[];
  /** Whether it looks like a mistake. */
  readonly isDoubtful: boolean;
}

/** What another topic would bring to a source. */
export function topicChange(
  before: string,
  { source, topic, records, sampled, fitting, reasons, empty }: Preview,
): Change {
  const title = `${source}: ${before || 'nothing'} → ${topic}`;
  if (records === 0 || sampled === 0) {
    return { title, lines: ['The topic has no records: the table would be empty.'], isDoubtful: true };
  }
  const lines = [
    `${COUNT.format(records)} records; ${COUNT.format(fitting)} of the last ${COUNT.format(sampled)} fit.`,
  ];
  if (fitting < sampled) lines.push(`The others would be rejected: ${reasons.join('; ')}.`);
  if (empty.length > 0) lines.push(`Columns that would stay empty: ${empty.join(', ')}.`);
  return { title, lines, isDoubtful: fitting < sampled || empty.length > 0 };
}

/** Another kind of join, or that nothing changes where both are the same. */
export function joinChange(before: string, after: string): Change {
  if (before === after) {
    const lines = ['What is live is asked for again; a build that is under way ends.'];
    return { title: 'Nothing', lines, isDoubtful: false };
  }
  return { title: `join: ${before} → ${after}`, lines: [], isDoubtful: false };
}
