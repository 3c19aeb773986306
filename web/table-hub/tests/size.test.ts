import { gzipSync } from 'node:zlib';
import { expect, it } from 'vitest';
import { build } from 'vite';

const BUDGET = 15_000;

it(`the whole client has at most ${BUDGET} bytes, bundled and compressed`, async () => {
  const built = await build({
    configFile: false,
    logLevel: 'error',
    build: { write: false, lib: { entry: `${import.meta.dirname}/../src/index.ts`, formats: ['es'] } },
  });
  if (!Array.isArray(built)) {
    throw new Error('expected a list of bundles');
  }
  const code = built.flatMap(({ output }) => output.map((part) => (part.type === 'chunk' ? part.code : '')));
  const size = gzipSync(code.join('')).length;
  console.info(`table-hub: ${size} bytes`);
  expect(code.join('')).toContain('expected a table name');
  expect(size).toBeLessThanOrEqual(BUDGET);
}, 30_000);
