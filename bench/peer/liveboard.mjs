// liveboard through its own client, TableHub, as it is: Node strips the types.
import { registerHooks } from 'node:module';

registerHooks({
  resolve(specifier, context, next) {
    const isOurs = context.parentURL?.includes('/web/table-hub/src/') && specifier.startsWith('.');
    return next(isOurs ? specifier.replace(/\.js$/, '.ts') : specifier, context);
  },
});
const { TableHub } = await import('../../web/table-hub/src/index.ts');

const RETRY_MS = 100;
const pause = () => new Promise((resolve) => setTimeout(resolve, RETRY_MS));

/** A hub that is connected, or null. */
async function tried(url, psk) {
  const hub = new TableHub({ url, psk });
  try {
    await hub.connect();
    return hub;
  } catch {
    hub.close();
    return null;
  }
}

/** A connection; waits for a server and for a table that are not there yet. */
export async function connect(url, [psk]) {
  let hub = null;
  return {
    async watch({ table, offset = 0, size = 300, order, sort, filter, column }, take) {
      for (;;) {
        hub = await tried(url, psk);
        if (hub?.tables.some(({ name }) => name === table)) {
          break;
        }
        hub?.close();
        await pause();
      }
      hub.subscribe(
        table,
        ({ columns, rows, total }) => {
          const index = columns.findIndex(({ name }) => name === column);
          take(total, rows.length, (row) => rows[row][index]);
        },
        { offset, size, ...(order && { order }), ...(sort && { sort }), ...(filter && { filter }) },
      );
    },
    close: () => hub?.close(),
  };
}
