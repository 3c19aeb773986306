// `make web-dev` passes the address of the running server on.
const target = process.env['LIVEBOARD_SERVER'] ?? 'http://127.0.0.1:8080';

export default {
  '/api': { target },
  '/ws': { target, ws: true },
};
