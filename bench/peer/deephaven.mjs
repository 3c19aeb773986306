// Deephaven through its own JavaScript API, over the WebSocket that it uses in a browser.
globalThis.self = globalThis.window = globalThis;

const RETRY_MS = 100;
const pause = () => new Promise((resolve) => setTimeout(resolve, RETRY_MS));
let api;

/** A connection; waits for a server that is not there yet. */
export async function connect(url, [module, interval]) {
  const { default: dh } = await (api ??= import(module));
  const isUp = () => fetch(url).then(({ ok }) => ok, () => false);
  while (!(await isUp())) {
    await pause();
  }
  const client = new dh.CoreClient(url);
  await client.login({ type: dh.CoreClient.LOGIN_TYPE_ANONYMOUS });
  const connection = await client.getAsIdeConnection();
  const sorted = (table, [column, order]) => {
    const sort = table.findColumn(column).sort();
    return order === 'desc' ? sort.desc() : sort.asc();
  };
  const filtered = (table, [column, , number]) =>
    table.findColumn(column).filter().greaterThan(dh.FilterValue.ofNumber(number));

  /** Shows the table that the name means now. */
  async function show(definition, { offset = 0, size = 300, order, sort, filter, column }, take) {
    const table = await connection.getObject(definition);
    if (order === 'newest') {
      table.applySort([dh.Table.reverse()]);
    }
    if (sort) {
      table.applySort(sort.map((each) => sorted(table, each)));
    }
    if (filter) {
      table.applyFilter(filter.map((each) => filtered(table, each)));
    }
    const watched = table.findColumn(column);
    let rows = [];
    const tell = () => take(table.size, rows.length, (row) => rows[row].get(watched));
    table.addEventListener(dh.Table.EVENT_UPDATED, ({ detail }) => {
      rows = detail.rows;
      tell();
    });
    table.addEventListener(dh.Table.EVENT_SIZECHANGED, tell);
    // Without an interval the server's default counts, as where an application gives none.
    table.setViewport(offset, offset + size - 1, table.columns, interval ? Number(interval) : undefined);
    return table;
  }

  let session;
  return {
    /** Follows the name: when the server means another table by it, that one is shown. */
    async watch({ table: title, ...window }, take) {
      let current;
      const found = async ({ created, updated }) => {
        const definition = [...created, ...updated].find((field) => field.title === title);
        if (definition) {
          const before = current;
          current = await show(definition, window, take);
          before?.close();
        }
      };
      // What the server's own program defines is listed to those who ask after that, and to nobody else.
      for (;;) {
        const stop = await new Promise((resolve) => {
          const cancel = connection.subscribeToFieldUpdates((fields) =>
            found(fields).finally(() => resolve(cancel)),
          );
        });
        if (current) {
          return;
        }
        stop();
        await pause();
      }
    },
    async run(code) {
      session ??= await connection.startSession('python');
      const { error } = await session.runCode(code);
      if (error) {
        throw new Error(error);
      }
    },
    close: () => client.disconnect(),
  };
}
