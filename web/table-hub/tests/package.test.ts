import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { build } from 'vite';

const FOLDER = join(import.meta.dirname, '..');
const BUDGET = 15_000;
const CONSUMER = `
import { TableHub, Unauthorized, type Filter, type Sort, type TableUpdate } from 'table-hub';

const sort: Sort = [['balance', 'desc']];
const filter: Filter = [['age', '>', 30]];
const hub = new TableHub({ url: 'http://127.0.0.1:1', psk: 'a key' });
const subscription = hub.subscribe('final_ui', ({ rows }: TableUpdate) => { console.log(rows.length); }, { sort, filter });
subscription.unsubscribe();
hub.close();
console.log(hub.state, new Unauthorized().name);
`;

let project: string;
let packed: string[];

/** What npm would publish, installed in a project of its own. */
beforeAll(() => {
  project = mkdtempSync(join(tmpdir(), 'table-hub-'));
  const said = execFileSync('npm', ['pack', '--json', '--pack-destination', project], {
    cwd: FOLDER,
    encoding: 'utf8',
  });
  const [tarball] = JSON.parse(said.slice(said.indexOf('['))) as { filename: string; files: { path: string }[] }[];
  if (tarball === undefined) {
    throw new Error(`expected a package, found ${said}`);
  }
  packed = tarball.files.map(({ path }) => path);
  const installed = join(project, 'node_modules', 'table-hub');
  mkdirSync(installed, { recursive: true });
  execFileSync('tar', ['-xzf', join(project, tarball.filename), '-C', installed, '--strip-components=1']);
  writeFileSync(join(project, 'package.json'), '{"type":"module"}');
  writeFileSync(join(project, 'consumer.ts'), CONSUMER);
});

afterAll(() => {
  rmSync(project, { recursive: true });
});

it('has JavaScript, its types, a licence and a readme, and nothing else', () => {
  const others = packed.filter((path) => !/^dist\/\w+(\.js|\.d\.ts)$/.test(path));
  expect(others.sort()).toEqual(['LICENSE', 'README.md', 'package.json']);
  expect(packed).toContain('dist/index.js');
  expect(packed).toContain('dist/index.d.ts');
});

it('another project can use it, with its types', () => {
  const tsc = join(FOLDER, '..', 'node_modules', '.bin', 'tsc');
  const options = ['--strict', '--target', 'es2022', '--lib', 'es2022,dom', '--module', 'nodenext'];
  execFileSync(tsc, [...options, 'consumer.ts'], { cwd: project });
  const said = execFileSync(process.execPath, ['consumer.js'], { cwd: project, encoding: 'utf8' });
  expect(said).toBe('closed Unauthorized\n');
});

it(`has at most ${BUDGET} bytes, bundled and compressed`, async () => {
  const entry = join(project, 'node_modules', 'table-hub', 'dist', 'index.js');
  const built = await build({
    configFile: false,
    logLevel: 'error',
    build: { write: false, lib: { entry, formats: ['es'] } },
  });
  if (!Array.isArray(built)) {
    throw new Error('expected a list of bundles');
  }
  const code = built.flatMap(({ output }) => output.map((part) => (part.type === 'chunk' ? part.code : '')));
  const size = gzipSync(code.join('')).length;
  console.info(`table-hub: ${size} bytes`);
  expect(code.join('')).toContain('expected a table name');
  expect(size).toBeLessThanOrEqual(BUDGET);
});
