// Viewers through the page's own client, in a process of their own: the same questions and answers as crowd.py.
import { registerHooks } from 'node:module';
import readline from 'node:readline';

registerHooks({
  resolve(specifier, context, next) {
    const isOurs = context.parentURL?.includes('/web/table-hub/src/') && specifier.startsWith('.');
    return next(isOurs ? specifier.replace(/\.js$/, '.ts') : specifier, context);
  },
});
const { TableHub } = await import('../web/table-hub/src/index.ts');

const [windows, key] = JSON.parse(process.argv[2]);
const viewers = await Promise.all(
  windows.map(async ([server, port, table, offset, size]) => {
    const hub = new TableHub({ url: `http://127.0.0.1:${port}`, psk: key });
    await hub.connect();
    const viewer = { server, table, offset, update: null };
    hub.subscribe(table, (update) => (viewer.update = update), { offset, size });
    return viewer;
  }),
);
for await (const _ of readline.createInterface({ input: process.stdin })) {
  const seen = viewers.map(({ server, table, offset, update }) => [
    server,
    table,
    offset,
    update?.total ?? 0,
    !update || update.staleSince !== null,
    update?.rows ?? [],
  ]);
  process.stdout.write(`${JSON.stringify(seen)}\n`);
}
