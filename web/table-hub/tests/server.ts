import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { Row } from '../src/frames.js';

const FOLDER = `${import.meta.dirname}/..`;
const PYTHON = process.env['LIVEBOARD_PYTHON'] ?? '../../.venv/bin/python';

export type Rows = Record<string, Row | null>;

/** A real server, and the board that it shows, which the test plays; commands are obeyed one after the other. */
export class Server {
  readonly url: string;
  readonly key: string;
  readonly #process: ChildProcessWithoutNullStreams;
  readonly #answers: AsyncIterator<string>;
  #last: Promise<unknown> = Promise.resolve();

  private constructor(process: ChildProcessWithoutNullStreams, answers: AsyncIterator<string>, first: string) {
    const { port, key } = JSON.parse(first) as { port: number; key: string };
    this.#process = process;
    this.#answers = answers;
    this.url = `http://127.0.0.1:${port}`;
    this.key = key;
  }

  static async start(): Promise<Server> {
    const process = spawn(PYTHON, ['tests/server.py'], { cwd: FOLDER });
    process.on('error', (error) => {
      console.error(`LIVEBOARD_PYTHON: expected a Python with liveboard, found ${PYTHON} (${error.message})`);
    });
    let complaints = '';
    process.stderr.on('data', (data: Buffer) => (complaints += data.toString()));
    process.on('exit', (code) => {
      if (code !== 0) {
        console.error(`expected a server, found:\n${complaints.slice(-2000)}`);
      }
    });
    const answers = createInterface(process.stdout)[Symbol.asyncIterator]();
    return new Server(process, answers, await next(answers));
  }

  async build(columns?: [string, string][]): Promise<string> {
    return (await this.#do('build', { columns: columns ?? null })) as string;
  }

  async write(generation: string, rows: Rows): Promise<void> {
    await this.#do('write', { generation, rows });
  }

  async switch(generation: string): Promise<void> {
    await this.#do('switch', { generation });
  }

  async bound(generation: string): Promise<void> {
    await this.#do('bound', { generation });
  }

  async close(generation: string): Promise<void> {
    await this.#do('close', { generation });
  }

  async stopServer(): Promise<void> {
    await this.#do('stop-server');
  }

  async startServer(): Promise<void> {
    await this.#do('start-server');
  }

  /** Returns when there are so many subscriptions on the wire. */
  async subscribed(count: number): Promise<void> {
    await this.#do('subscribed', { count });
  }

  async end(): Promise<void> {
    if (this.#process.exitCode === null) {
      this.#process.stdin.end();
      await once(this.#process, 'exit');
    }
  }

  #do(what: string, options: object = {}): Promise<unknown> {
    this.#process.stdin.write(`${JSON.stringify({ do: what, ...options })}\n`);
    const answer = this.#last.then(async () => {
      const text = await next(this.#answers);
      return (JSON.parse(text) as { answer: unknown }).answer;
    });
    this.#last = answer;
    return answer;
  }
}

async function next(answers: AsyncIterator<string>): Promise<string> {
  const answer = await answers.next();
  if (answer.done) {
    throw new Error('expected an answer of the server, found its end');
  }
  return answer.value;
}
