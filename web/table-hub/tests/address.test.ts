import { afterEach, expect, it, vi } from 'vitest';
import { webSocketUrl } from '../src/address.js';
import { TableHub } from '../src/index.js';
import { FakeServer, KEY, URL_ } from './fake.js';

afterEach(() => {
  vi.unstubAllGlobals();
});

it.each([
  ['', KEY, 'url'],
  [undefined, KEY, 'url'],
  [URL_, '', 'psk'],
  [URL_, undefined, 'psk'],
])('b19 what is missing is named: %s %s', (url, psk, named) => {
  const options = { url, psk } as { url: string; psk: string };
  expect(() => new TableHub(options)).toThrow(new RegExp(`^${named}: expected .*, found nothing$`));
});

it.each(['127.0.0.1:8080', 'h/x', '//h', 'ftp://h', 'http://', 'http://h:port', 'http://u:secret@h', 'http://h?a'])(
  'b19 an address that is none is not repeated: %s',
  (url) => {
    vi.stubGlobal('location', { origin: 'https://page' });
    expect(() => webSocketUrl(url)).toThrow(
      /^url: expected the address of a server such as \S+, found something else$/,
    );
  },
);

it.each(['two\nlines', 'π', '\ud800', '\xa0'])('b19 a key that cannot be sent is not repeated', (psk) => {
  expect(() => new TableHub({ url: URL_, psk })).toThrow(
    /^psk: expected a key of printable Latin-1 characters, found others$/,
  );
});

it.each([
  ['http://h:1', 'ws://h:1/ws'],
  ['HTTPS://h/boards/', 'wss://h/boards/ws'],
  ['ws://h:1/ws', 'ws://h:1/ws'],
  ['wss://[::1]:1', 'wss://[::1]:1/ws'],
])('the address %s', (url, expected) => {
  expect(webSocketUrl(url)).toBe(expected);
});

it.each([
  ['', 'wss://page:1/ws'],
  ['/', 'wss://page:1/ws'],
  ['/boards', 'wss://page:1/boards/ws'],
  ['ws://other', 'ws://other/ws'],
])('the address "%s" in a page', (url, expected) => {
  vi.stubGlobal('location', { origin: 'https://page:1' });
  expect(webSocketUrl(url)).toBe(expected);
});

it('b19 the key is nowhere to be read in a hub', async () => {
  const { inspect } = await import('node:util');
  const hub = new FakeServer().hub();
  await hub.connect();
  const shown: unknown = hub;
  for (const text of [String(shown), JSON.stringify(hub), inspect(hub, { depth: 9, showHidden: true })]) {
    expect(text).not.toContain(KEY);
  }
});
