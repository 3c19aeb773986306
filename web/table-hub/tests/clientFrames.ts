import type { ClientFrame } from '../src/frames.js';

type Check = (value: unknown) => boolean;

const isNumber: Check = (value) => Number.isInteger(value);
const isString: Check = (value) => typeof value === 'string';
const isNull: Check = (value) => value === null;
const either =
  (...checks: Check[]): Check =>
  (value) =>
    checks.some((check) => check(value));
const listOf =
  (check: Check): Check =>
  (value) =>
    Array.isArray(value) && value.every(check);
const isSortKey: Check = (value) =>
  Array.isArray(value) && value.length === 2 && isString(value[0]) && (value[1] === 'asc' || value[1] === 'desc');

const query = {
  order: (value: unknown) => value === 'arrival' || value === 'newest',
  sort: either(isNull, listOf(isSortKey)),
  filter: either(isNull, listOf(Array.isArray)),
  search: either(isNull, isString),
};

/** What the server accepts: fields that must be there, and fields that may. */
const FRAMES: Record<string, [must: Record<string, Check>, may: Record<string, Check>]> = {
  auth: [{ psk: isString }, { protocol: isNumber }],
  subscribe: [
    { id: isNumber, table: isString },
    { sql: isString, offset: isNumber, size: isNumber, ...query, generation: either(isNull, isString) },
  ],
  window: [{ id: isNumber }, { offset: isNumber, size: isNumber, ...query }],
  unsubscribe: [{ id: isNumber }, {}],
};

/** As strict as the server: unknown fields are refused too. */
export function isClientFrame(value: unknown): value is ClientFrame {
  if (typeof value !== 'object' || value === null || !('op' in value) || !isString(value.op)) {
    return false;
  }
  const { op, ...fields } = value;
  const [must, may] = FRAMES[op as string] ?? [{ op: () => false }, {}];
  const known = { ...must, ...may };
  return (
    Object.keys(must).every((name) => name in fields) &&
    Object.entries(fields).every(([name, field]) => known[name]?.(field) ?? false)
  );
}
