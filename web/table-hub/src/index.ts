export type { HubState } from './connection.js';
export { Unauthorized, Unreachable } from './errors.js';
export type { Column, Filter, Role, Row, Sort, TableInfo, Value } from './frames.js';
export { type HubOptions, TableHub, type TableStream } from './hub.js';
export type { Query, WindowQuery } from './query.js';
export type { Subscription } from './subscription.js';
export type { TableUpdate } from './update.js';
