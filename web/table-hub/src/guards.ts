/** Guards of unknown JSON. The page beside this package uses them too; the package does not export them. */

export type Guard<T> = (value: unknown) => value is T;

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function isString(value: unknown): value is string {
  return typeof value === 'string';
}

export function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

export function isOneOf<T>(value: unknown, known: readonly T[]): value is T {
  return (known as readonly unknown[]).includes(value);
}

export function isListOf<T>(value: unknown, guard: Guard<T>): value is T[] {
  return Array.isArray(value) && value.every(guard);
}
