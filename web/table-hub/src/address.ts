const EXPECTED = 'url: expected the address of a server such as http://127.0.0.1:8080';

/** Where the live windows of a server are; the address may be relative to the page, and "" is the page's own server. */
export function webSocketUrl(url: string): string {
  const page = typeof location === 'undefined' ? undefined : location.origin;
  // A caller without types may have forgotten it.
  if (typeof url !== 'string' || (url === '' && page === undefined)) {
    throw new Error(`${EXPECTED}, found nothing`);
  }
  const isKnown = /^((https?|wss?):\/\/|\/(?!\/)|$)/i.test(url);
  const found = isKnown ? URL.parse(url, page) : null;
  if (found === null || found.search || found.hash || found.username || found.password) {
    // Not what was found: an address can carry a password.
    throw new Error(`${EXPECTED}, found something else`);
  }
  const path = found.pathname.replace(/\/+$/, '').replace(/\/ws$/, '');
  return `${found.protocol.replace('http', 'ws')}//${found.host}${path}/ws`;
}

/** The key, if a server can have it. */
export function checkedKey(psk: string): string {
  if (typeof psk !== 'string' || psk === '') {
    throw new Error("psk: expected the server's key (server.psk in its settings), found nothing");
  }
  // HTTP, where the same key is used, carries no other characters.
  if (!/^[\x20-\x7e\xa1-\xac\xae-\xff]+$/.test(psk)) {
    throw new Error('psk: expected a key of printable Latin-1 characters, found others');
  }
  return psk;
}
