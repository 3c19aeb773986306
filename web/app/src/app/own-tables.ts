/** The tables that liveboard fills itself, by the names that the server's contract/names.py gives them. */
export const STATUS_TABLE = 'orchestrator_status';
export const CONTROL_TABLE = 'control_raw';
export const ALERTS_TABLE = 'alerts_ui';
export const REJECTS_TABLE = 'rejects_ui';

/** What the control panel shows already: nobody wants a card of them. */
export const PANEL_TABLES: ReadonlySet<string> = new Set([STATUS_TABLE, CONTROL_TABLE]);
/** What belongs to no generation: it is there before the first one. Rejects come with each generation. */
export const LASTING_TABLES: ReadonlySet<string> = new Set([...PANEL_TABLES, ALERTS_TABLE]);
/** All of them: they are on no board unless somebody puts them there. */
export const OWN_TABLES: ReadonlySet<string> = new Set([...LASTING_TABLES, REJECTS_TABLE]);
