import { type Value, WIRE_TYPES, type WireType } from 'table-hub';
import { pretty } from '../row-detail/pretty';
import type { Format } from './view-state';

const DAY_MS = 86_400_000;
const MOST_DECIMALS = 4;
const MOST_DECIMALS_OF_SMALL = 6;
const ISO = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d+))?Z$/;
/** From this number on, a column of whole numbers has commas. */
export const GROUPED_FROM = 10_000;
const BYTES = ['B', 'kB', 'MB', 'GB', 'TB', 'PB'];
const DEFAULT_CURRENCY = 'USD';

/** What the values of a column have in common, so that they are written alike. It only grows. */
export interface Shape {
  readonly decimals: number;
  /** Whether times need their day, or are all of one day that is today. */
  readonly hasDays: boolean;
  readonly hasMillis: boolean;
  /** The greatest value, without its sign. */
  readonly greatest: number;
}

export const NO_SHAPE: Shape = { decimals: 0, hasDays: false, hasMillis: false, greatest: 0 };

/** A shape that fits these values too; the same one where it does already. */
export function grown(shape: Shape, values: readonly (Value | undefined)[], type: WireType, now: number): Shape {
  let { decimals, hasDays, hasMillis, greatest } = shape;
  for (const value of values) {
    if (value === null || value === undefined) continue;
    if (type === 'timestamp') {
      const [, seconds, fraction] = ISO.exec(String(value)) ?? [];
      hasDays ||= seconds === undefined || !isSameDay(new Date(`${seconds}Z`), new Date(now));
      hasMillis ||= /[1-9]/.test((fraction ?? '').slice(0, 3));
    } else if (WIRE_TYPES[type].isNumber) {
      const number = Number(value);
      greatest = Math.max(greatest, Math.abs(number));
      decimals = Math.max(decimals, type === 'decimal' ? digitsBehind(String(value)) : decimalsOf(number));
    }
  }
  const isGrown =
    decimals !== shape.decimals ||
    hasDays !== shape.hasDays ||
    hasMillis !== shape.hasMillis ||
    greatest !== shape.greatest;
  return isGrown ? { decimals, hasDays, hasMillis, greatest } : shape;
}

/** A value as people read it; times in the viewer's time zone. */
export function shown(
  value: Value | undefined,
  type: WireType,
  format?: Format,
  shape: Shape = { ...NO_SHAPE, hasDays: true, hasMillis: true },
  now = Date.now(),
): string {
  if (value === null || value === undefined) return '';
  const moment = type === 'timestamp' ? Date.parse(String(value)) : Number(value);
  const isNumber = typeof value === 'number' || (WIRE_TYPES[type].isNumber && Number.isFinite(moment));
  if (format === undefined) {
    if (type === 'timestamp') return localTime(String(value), shape.hasDays, shape.hasMillis);
    return WIRE_TYPES[type].isNumber ? plainNumber(value, type, shape) : String(value);
  }
  switch (format.kind) {
    case 'relative':
      return Number.isFinite(moment) ? ago(now - epochMs(moment, type)) : String(value);
    case 'time':
      return isNumber
        ? localTime(new Date(epochMs(moment, type)).toISOString(), true, true)
        : localTime(String(value), true, shape.hasMillis);
    default:
      return isNumber ? asNumber(value, moment, format, shape) : String(value);
  }
}

/** All that there is of a value, for who wants to know exactly. */
export function whole(value: Value | undefined, type: WireType): string {
  if (value === null || value === undefined) return '';
  if (type === 'json') return pretty(String(value));
  return type === 'timestamp' ? `${String(value)}\n${localTime(String(value), true, true)} ${zone()}` : String(value);
}

/** The viewer's time zone, such as UTC+5:30. */
export function zone(date = new Date()): string {
  const minutes = -date.getTimezoneOffset();
  if (minutes === 0) return 'UTC';
  const [hours, rest] = [Math.floor(Math.abs(minutes) / 60), Math.abs(minutes) % 60];
  return `UTC${minutes < 0 ? '−' : '+'}${hours}${rest ? `:${two(rest)}` : ''}`;
}

/** A clock time of the viewer's time zone. */
export function clockTime(date: Date): string {
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

const ISO_TIME = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g;

/** A sentence whose times are those of the viewer's clock. */
export function localTimes(text: string): string {
  return text.replaceAll(ISO_TIME, (time) => `${clockTime(new Date(time))} ${zone()}`);
}

/** A duration in the largest unit that says enough. */
export function duration(milliseconds: number): string {
  const seconds = Math.max(0, milliseconds) / 1000;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 120) return `${seconds.toFixed(0)} s`;
  if (seconds < 7_200) return `${(seconds / 60).toFixed(0)} min`;
  return seconds < 172_800 ? `${(seconds / 3_600).toFixed(0)} h` : `${(seconds / 86_400).toFixed(0)} d`;
}

const LOCAL_TIME = /^(?:(\d{4}-\d\d-\d\d)[ T])?(\d\d:\d\d(?::\d\d)?)(\.\d*)?$/;

/** What the server finds by what the viewer sees: times of the viewer's zone become those of UTC. */
export function sought(text: string): string {
  const [, day, time, fraction = ''] = LOCAL_TIME.exec(text.trim()) ?? [];
  if (time === undefined) return text;
  const date = new Date(`${day ?? today()}T${time.length === 5 ? `${time}:00` : time}`);
  if (Number.isNaN(date.getTime())) return text;
  const utc = date.toISOString();
  return (day === undefined ? '' : `${utc.slice(0, 10)} `) + utc.slice(11, 11 + time.length) + fraction;
}

function plainNumber(value: NonNullable<Value>, type: WireType, { decimals, greatest }: Shape): string {
  // Years and the like have no commas.
  if (type.startsWith('int')) return formatter({ useGrouping: greatest >= GROUPED_FROM }).format(value as number);
  const digits = {
    minimumFractionDigits: decimals,
    maximumFractionDigits: Math.max(
      decimals,
      type === 'decimal' ? digitsBehind(String(value)) : decimalsOf(Number(value)),
    ),
  };
  return formatter(digits).format(value as number);
}

function asNumber(value: NonNullable<Value>, number: number, { kind, currency }: Format, { decimals }: Shape): string {
  switch (kind) {
    case 'money':
      return formatter({ style: 'currency', currency: currency ?? DEFAULT_CURRENCY }).format(number);
    case 'percent':
      return formatter({ style: 'percent', minimumFractionDigits: 1, maximumFractionDigits: 1 }).format(number);
    case 'bytes': {
      const power = Math.min(BYTES.length - 1, Math.max(0, Math.floor(Math.log10(Math.abs(number) || 1) / 3)));
      const digits = power === 0 ? 0 : 1;
      const amount = formatter({ minimumFractionDigits: digits, maximumFractionDigits: digits });
      return `${amount.format(number / 1000 ** power)} ${BYTES[power] ?? ''}`;
    }
    case 'duration':
      return (number < 0 ? '−' : '') + duration(Math.abs(number));
    default:
      return formatter({ minimumFractionDigits: decimals, maximumFractionDigits: decimals }).format(value as number);
  }
}

const formatters = new Map<string, Intl.NumberFormat>();

function formatter(options: Intl.NumberFormatOptions): Intl.NumberFormat {
  const key = JSON.stringify(options);
  let found = formatters.get(key);
  if (found === undefined) formatters.set(key, (found = new Intl.NumberFormat('en-US', options)));
  return found;
}

function decimalsOf(number: number): number {
  if (Number.isInteger(number) || !Number.isFinite(number)) return 0;
  const most = Math.abs(number) < 1 ? MOST_DECIMALS_OF_SMALL : MOST_DECIMALS;
  const text = number.toFixed(most).replace(/0+$/, '');
  return text.length - text.indexOf('.') - 1;
}

function digitsBehind(decimal: string): number {
  const point = decimal.indexOf('.');
  return point < 0 ? 0 : decimal.length - point - 1;
}

/** Numbers of our time: seconds up to the year 5138, otherwise milliseconds. */
function epochMs(moment: number, type: WireType): number {
  return type === 'timestamp' || Math.abs(moment) >= 1e11 ? moment : moment * 1000;
}

/** In whole seconds: what says so is written anew once a second. */
function ago(milliseconds: number): string {
  const seconds = Math.trunc(Math.abs(milliseconds) / 1000);
  if (seconds === 0) return 'now';
  const text = seconds < 10 ? `${seconds} s` : duration(1000 * seconds);
  return milliseconds < 0 ? `in ${text}` : `${text} ago`;
}

function localTime(iso: string, hasDay: boolean, hasMillis: boolean): string {
  const [, seconds, fraction = ''] = ISO.exec(iso) ?? [];
  if (seconds === undefined) return iso;
  const date = new Date(`${seconds}Z`);
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} `;
  return (hasDay ? day : '') + clockTime(date) + (hasMillis ? `.${fraction.padEnd(3, '0').slice(0, 3)}` : '');
}

function isSameDay(one: Date, other: Date): boolean {
  return Math.abs(one.getTime() - other.getTime()) < DAY_MS && one.getDate() === other.getDate();
}

function today(): string {
  const now = new Date();
  return `${now.getFullYear()}-${two(now.getMonth() + 1)}-${two(now.getDate())}`;
}

function two(number: number): string {
  return String(number).padStart(2, '0');
}
