export type { HubState } from './connection.js';
export { Unauthorized, Unreachable } from './errors.js';
export type { Column, Filter, Order, Role, Row, Sort, TableInfo, Value } from './frames.js';
export { type HubOptions, TableHub, type TableStream } from './hub.js';
export type { Query, WindowQuery } from './query.js';
export type { Subscription } from './subscription.js';
export { WIRE_TYPES, type WireType, type WireTypeInfo } from './types.js';
export type { TableUpdate } from './update.js';
