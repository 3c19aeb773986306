/** The types of columns as viewers see them; the server's contract/types.py has them with all that lies behind. */

/** What there is to know of a type in order to show it. */
export interface WireTypeInfo {
  readonly align: 'left' | 'right';
  /** Whether there are a distribution and a mean of it. */
  readonly isNumber: boolean;
}

/**
 * Every type. An int64 beyond 2^53 and every decimal come as a string of digits; dates and timestamps are ISO-8601 texts,
 * json is the text of a document, and binary is in base64.
 */
export const WIRE_TYPES = {
  string: { align: 'left', isNumber: false },
  bool: { align: 'left', isNumber: false },
  int32: { align: 'right', isNumber: true },
  int64: { align: 'right', isNumber: true },
  float64: { align: 'right', isNumber: true },
  decimal: { align: 'right', isNumber: true },
  date: { align: 'left', isNumber: false },
  timestamp: { align: 'left', isNumber: false },
  json: { align: 'left', isNumber: false },
  binary: { align: 'left', isNumber: false },
} as const satisfies Record<string, WireTypeInfo>;

/** The name of a type. */
export type WireType = keyof typeof WIRE_TYPES;

export function isWireType(value: unknown): value is WireType {
  return typeof value === 'string' && Object.hasOwn(WIRE_TYPES, value);
}
