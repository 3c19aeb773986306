// Viewers of either system, in a process of their own. Orders come as lines of JSON on the standard input, each is
// answered with one line on the standard output. Times are of CLOCK_MONOTONIC, which Python's time.monotonic_ns() reads
// too; a time is taken as the first thing in the callback that the system's own client library calls.
import readline from 'node:readline';

const [system, ...settings] = process.argv.slice(2);
const { connect } = await import(`./${system}.mjs`);

const largest = (count, value) => {
  let found = value(0);
  for (let index = 1; index < count; index += 1) {
    found = Math.max(found, value(index));
  }
  return found;
};

/** What one viewer sees of its window, and when. */
class Viewer {
  seen = [];
  shown = [];
  total = 0;
  updates = 0;
  longestGapNs = 0;
  lastNs = 0;
  awaited = null;
  first = Promise.withResolvers();
  firstRow = Promise.withResolvers();

  /** One that looks `forNewest` keeps the largest number of its window alone: rows come, and all others move. */
  constructor(isTimed, forNewest) {
    this.isTimed = isTimed;
    this.forNewest = forNewest;
  }

  /** `value` gives what a row of the window has in the watched column. */
  take = (total, count, value) => {
    const now = Number(process.hrtime.bigint());
    this.updates += 1;
    this.total = total;
    if (this.isTimed) {
      if (this.lastNs) {
        this.longestGapNs = Math.max(this.longestGapNs, now - this.lastNs);
      }
      this.lastNs = now;
      const rows = this.forNewest ? Math.min(count, 1) : count;
      for (let index = 0; index < rows; index += 1) {
        const found = this.forNewest ? largest(count, value) : value(index);
        if (found !== this.shown[index]) {
          this.shown[index] = found;
          this.seen.push([found, now]);
        }
      }
      this.shown.length = rows;
    }
    this.first.resolve(now);
    if (count > 0) {
      this.firstRow.resolve(now);
    }
    if (this.awaited && total === this.awaited.total && this.shown.includes(this.awaited.value)) {
      this.awaited.reached(now);
      this.awaited = null;
    }
  };
}

let viewers = [];
let connections = [];

const orders = {
  /** Opens `count` connections with one viewer each, and waits for the first rows of all; the first `timed` keep times. */
  async watch({ url, count = 1, timed = 1, windows, column }) {
    for (let number = 0; number < count; number += 1) {
      const window = { column, ...windows[number % windows.length] };
      const viewer = new Viewer(number < timed, window.order === 'newest');
      const connection = await connect(url, settings);
      connections.push(connection);
      viewers.push(viewer);
      await connection.watch(window, viewer.take);
    }
    await Promise.all(viewers.map((viewer) => viewer.first.promise));
    return { watching: count };
  },

  /** When the first viewer had a row. */
  async row() {
    return { at: await viewers[0].firstRow.promise };
  },

  /** Answers when the first viewer has so many rows in all and the value in its window. */
  async until({ total, value }) {
    const [viewer] = viewers;
    if (viewer.total === total && viewer.shown.includes(value)) {
      return { at: viewer.seen.findLast(([found]) => found === value)?.[1] ?? viewer.lastNs };
    }
    return { at: await new Promise((reached) => (viewer.awaited = { total, value, reached })) };
  },

  /** What was seen since the last time, by every viewer that keeps times, and the longest time between two updates. */
  async collect() {
    const timed = viewers.filter((viewer) => viewer.isTimed);
    const answer = {
      seen: timed.map((viewer) => viewer.seen),
      longestGapNs: timed.map((viewer) => viewer.longestGapNs),
      updates: viewers.reduce((sum, viewer) => sum + viewer.updates, 0),
    };
    for (const viewer of viewers) {
      Object.assign(viewer, { seen: [], longestGapNs: 0, updates: 0 });
    }
    return answer;
  },

  /** Lets the system's server run a program, where it takes any. */
  async run({ code }) {
    await connections[0].run(code);
    return {};
  },

  async close() {
    for (const connection of connections) {
      connection.close();
    }
    [viewers, connections] = [[], []];
    return {};
  },
};

const lines = readline.createInterface({ input: process.stdin });
process.stdout.write('{"ready":true}\n');
for await (const line of lines) {
  const { order, ...details } = JSON.parse(line);
  let answer;
  try {
    answer = await orders[order](details);
  } catch (error) {
    answer = { error: String(error?.message ?? error) };
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
process.exit(0);
