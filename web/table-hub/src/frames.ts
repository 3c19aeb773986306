/** The frames of protocol 1: `op` from the client, `ev` from the server. The server's contract/frames.py explains them. */

import { type Guard, isCount, isListOf, isObject, isOneOf, isString } from './guards.js';
import { isWireType, type WireType } from './types.js';

export const PROTOCOL = 1;
export const DEFAULT_SIZE = 300;
export const MAX_SIZE = 10_000;

/** Close code: the key is wrong or came too late. */
export const UNAUTHORIZED = 4401;
/** Close code: the server does not speak the client's protocol. */
export const UNSUPPORTED = 4406;

export type Value = string | number | boolean | null;
export type Row = readonly Value[];

export interface Column {
  name: string;
  type: WireType;
}

export interface TableInfo {
  name: string;
  columns: Column[];
  rows: number;
  /** What it is: source, join, aggregate, rejects and so on; older servers do not tell. */
  kind?: string;
}

/** The table's own order from its beginning, or from its end. */
export type Order = 'arrival' | 'newest';
export type Sort = [string, 'asc' | 'desc'][];
export type Filter = unknown[][];

const CODES = [
  'unauthorized',
  'bad_frame',
  'bad_name',
  'unknown_table',
  'bad_window',
  'bad_filter',
  'bad_sql',
  'over_limit',
  'too_many',
  'overloaded',
] as const;

export type Code = (typeof CODES)[number];

const ROLES = ['viewer', 'admin'] as const;

/** What a key is for: a viewer reads, an admin also swaps topics and joins. */
export type Role = (typeof ROLES)[number];

export interface Auth {
  op: 'auth';
  psk: string;
  protocol: number;
}

export interface Subscribe {
  op: 'subscribe';
  id: number;
  table: string;
  /** One SELECT, in place of a table. */
  sql?: string;
  offset: number;
  size: number;
  order: Order;
  sort: Sort | null;
  filter: Filter | null;
  search: string | null;
  generation: string | null;
}

/** Moves a subscription; what is not named stays as it is. */
export interface MoveWindow {
  op: 'window';
  id: number;
  offset?: number;
  size?: number;
  order?: Order;
  sort?: Sort | null;
  filter?: Filter | null;
  search?: string | null;
}

export interface Unsubscribe {
  op: 'unsubscribe';
  id: number;
}

export type ClientFrame = Auth | Subscribe | MoveWindow | Unsubscribe;

export interface Ready {
  ev: 'ready';
  tables: TableInfo[];
  role: Role;
  server: string;
}

export interface Snapshot {
  ev: 'snapshot';
  id: number;
  version: number;
  generation: string | null;
  total: number;
  offset: number;
  columns: Column[];
  keys: string[];
  rows: Row[];
}

export interface Delta {
  ev: 'delta';
  id: number;
  version: number;
  total: number;
  rows: [index: number, key: string, row: Row][];
  drop: number;
  insert: number;
}

export interface Rebound {
  ev: 'rebound';
  id: number;
  generation: string | null;
}

export interface ErrorFrame {
  ev: 'error';
  id: number | null;
  code: Code;
  message: string;
}

export interface Beat {
  ev: 'beat';
}

export type ServerFrame = Ready | Snapshot | Delta | Rebound | ErrorFrame | Beat;

/** Reads a frame from the server; null if the data is not a frame. */
export function decodeServer(data: unknown): ServerFrame | null {
  if (typeof data !== 'string') {
    return null;
  }
  try {
    const value: unknown = JSON.parse(data);
    return isServerFrame(value) ? value : null;
  } catch {
    return null;
  }
}

export function isServerFrame(value: unknown): value is ServerFrame {
  if (!isObject(value)) {
    return false;
  }
  switch (value['ev']) {
    case 'ready':
      return isListOf(value['tables'], isTableInfo) && isOneOf(value['role'], ROLES) && isString(value['server']);
    case 'snapshot':
      return (
        hasPlace(value) &&
        isNullOr(value['generation'], isString) &&
        isCount(value['offset']) &&
        isListOf(value['columns'], isColumn) &&
        isListOf(value['keys'], isString) &&
        isListOf(value['rows'], isRow) &&
        value['keys'].length === value['rows'].length
      );
    case 'delta':
      return hasPlace(value) && isListOf(value['rows'], isChange) && isCount(value['drop']) && isCount(value['insert']);
    case 'rebound':
      return isCount(value['id']) && isNullOr(value['generation'], isString);
    case 'error':
      return isNullOr(value['id'], isCount) && isOneOf(value['code'], CODES) && isString(value['message']);
    case 'beat':
      return true;
    default:
      return false;
  }
}

function isNullOr<T>(value: unknown, guard: Guard<T>): value is T | null {
  return value === null || guard(value);
}

function hasPlace(frame: Record<string, unknown>): boolean {
  return isCount(frame['id']) && isCount(frame['version']) && isCount(frame['total']);
}

function isColumn(value: unknown): value is Column {
  return isObject(value) && isString(value['name']) && isWireType(value['type']);
}

function isTableInfo(value: unknown): value is TableInfo {
  return isObject(value) && isString(value['name']) && isListOf(value['columns'], isColumn) && isCount(value['rows']);
}

function isValue(value: unknown): value is Value {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' || value === null;
}

function isRow(value: unknown): value is Row {
  return isListOf(value, isValue);
}

function isChange(value: unknown): value is [number, string, Row] {
  return Array.isArray(value) && isCount(value[0]) && isString(value[1]) && isRow(value[2]);
}
