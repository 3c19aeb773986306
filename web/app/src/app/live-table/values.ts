import type { Column, Value } from 'table-hub';

const NUMBER = new Intl.NumberFormat('en-US', { maximumFractionDigits: 6 });
const ISO = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d+))?Z$/;

/** A value as people read it; times in the viewer's time zone, to the millisecond. */
export function shown(value: Value | undefined, type: Column['type']): string {
  if (value === null || value === undefined) return '';
  if (type === 'timestamp' && typeof value === 'string') return localTime(value);
  if (type === 'float64' && typeof value === 'number') return NUMBER.format(value);
  return String(value);
}

/** A clock time of the viewer's time zone. */
export function clockTime(date: Date): string {
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

/** A duration in the largest unit that says enough. */
export function duration(milliseconds: number): string {
  const seconds = Math.max(0, milliseconds) / 1000;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 120) return `${seconds.toFixed(0)} s`;
  if (seconds < 7_200) return `${(seconds / 60).toFixed(0)} min`;
  return seconds < 172_800 ? `${(seconds / 3_600).toFixed(0)} h` : `${(seconds / 86_400).toFixed(0)} d`;
}

function localTime(iso: string): string {
  const parts = ISO.exec(iso);
  if (parts === null) return iso;
  const date = new Date(`${parts[1] ?? ''}Z`);
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day} ${clockTime(date)}.${(parts[2] ?? '').padEnd(3, '0').slice(0, 3)}`;
}

function two(number: number): string {
  return String(number).padStart(2, '0');
}
