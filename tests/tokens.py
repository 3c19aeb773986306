"""A small real OpenID provider: the client_credentials grant, signed tokens, and the keys to check them with."""

from __future__ import annotations

import base64
import json
import ssl
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from certificates import Certificate, new_key
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

ISSUER = "https://issuer.test"
AUDIENCE = "kafka"
SCOPE = "kafka.access"
_KEY_ID = "one"
_LIFE_S = 600


class TokenEndpoint:
    """Gives tokens to those who know the secret of a client, at `url`; `jwks_url` has the public key.

    It can be closed and opened again at the same address, and made to answer nobody until `slow` is cleared.
    """

    def __init__(
        self, clients: dict[str, str], certificate: Certificate | None = None, key: rsa.RSAPrivateKey | None = None
    ) -> None:
        self.clients = clients
        self.key = key or new_key()
        self.slow = threading.Event()
        self.life_s = _LIFE_S
        """How long what it gives from now on is good for."""
        self.given: list[str] = []
        """Every token that was ever given."""
        self._certificate = certificate
        self._port = 0
        self.open()

    @property
    def url(self) -> str:
        """Where tokens are given."""
        return f"{self._origin}/token"

    @property
    def jwks_url(self) -> str:
        """Where the public key is."""
        return f"{self._origin}/jwks"

    @property
    def _origin(self) -> str:
        return f"{'https' if self._certificate else 'http'}://127.0.0.1:{self._port}"

    def open(self) -> None:
        """Answers from now on."""
        self._server = _Server(("127.0.0.1", self._port), self._handler())
        self._port = self._server.server_address[1]
        if self._certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self._certificate.both)
            self._server.socket = context.wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False
            )
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        """Refuses connections from now on."""
        self.slow.clear()
        self._server.shutdown()
        self._server.server_close()

    def token(self, client: str) -> str:
        """A token for the client, signed with RS256."""
        now = int(time.time())
        claims = {"iss": ISSUER, "aud": AUDIENCE, "sub": client, "scope": SCOPE, "iat": now, "exp": now + self.life_s}
        signed = f"{_encoded({'alg': 'RS256', 'kid': _KEY_ID, 'typ': 'JWT'})}.{_encoded(claims)}"
        return f"{signed}.{_base64(self.key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256()))}"

    def answer(self, authorization: str, form: dict[str, list[str]]) -> tuple[int, dict[str, Any]]:
        """What a request for a token gets."""
        client, _, secret = base64.b64decode(authorization.removeprefix("Basic ")).decode().partition(":")
        if client not in self.clients or self.clients[client] != secret:
            return 401, {"error": "invalid_client"}
        if form.get("grant_type") != ["client_credentials"]:
            return 400, {"error": "unsupported_grant_type"}
        if form.get("scope") != [SCOPE]:
            return 400, {"error": "invalid_scope"}
        self.given.append(self.token(client))
        return 200, {"access_token": self.given[-1], "token_type": "Bearer", "expires_in": self.life_s}

    def jwks(self) -> dict[str, Any]:
        """The public key."""
        numbers = self.key.public_key().public_numbers()
        key = {"kty": "RSA", "use": "sig", "alg": "RS256", "kid": _KEY_ID, "n": _number(numbers.n)}
        return {"keys": [{**key, "e": _number(numbers.e)}]}

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._send(200, endpoint.jwks())

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                while endpoint.slow.is_set():
                    time.sleep(0.05)
                self._send(*endpoint.answer(self.headers.get("Authorization", ""), urllib.parse.parse_qs(body)))

            def _send(self, status: int, document: dict[str, Any]) -> None:
                content = json.dumps(document).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, format: str, *args: object) -> None:
                pass

        return Handler


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients that go away, or do not trust us, are none of our business."""


def _base64(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def _encoded(document: dict[str, Any]) -> str:
    return _base64(json.dumps(document).encode())


def _number(value: int) -> str:
    return _base64(value.to_bytes((value.bit_length() + 7) // 8, "big"))
