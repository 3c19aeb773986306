/** The server does not know the key; trying again is useless. */
export class Unauthorized extends Error {
  override readonly name = 'Unauthorized';

  constructor() {
    super("unauthorized: expected the server's key (server.psk), found another");
  }
}

/** There is no server, or something else in its place. */
export class Unreachable extends Error {
  override readonly name = 'Unreachable';
}
