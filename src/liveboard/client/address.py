"""Where the server is and the key it wants."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from urllib.parse import urlsplit

from liveboard.config.values import Secret
from liveboard.contract.errors import LiveboardError

_SCHEMES = {"http": "http", "https": "https", "ws": "http", "wss": "https"}


class Unauthorized(LiveboardError):
    """The server does not know the key; trying again is useless."""

    def __init__(self) -> None:
        super().__init__("unauthorized: expected the server's key (server.psk), found another")


class Unreachable(LiveboardError):
    """There is no server, or something else in its place."""


@dataclass(frozen=True)
class Address:
    """A server's address, as http:// or https://, and its key, which no repr shows."""

    url: str
    psk: Secret
    tls: ssl.SSLContext | None = None
    """How the server's certificate is checked; None for http://."""

    @property
    def websocket(self) -> str:
        """Where the live windows are."""
        return f"ws{self.url.removeprefix('http')}/ws"


def address(url: str | None, psk: str | Secret | None, ca_file: str | None = None) -> Address:
    """The address; an error names the one that is missing, url or psk, or says what is wrong with the url.

    A server with https:// is trusted if an authority in `ca_file` has signed its certificate; without the file, one of
    the system, or of the file that the variable SSL_CERT_FILE names.
    """
    expected = "url: expected the address of a server such as http://127.0.0.1:8080"
    if not url:
        raise LiveboardError(f"{expected}, found nothing")
    if not psk:
        raise LiveboardError("psk: expected the server's key (server.psk in its settings), found nothing")
    try:
        parts = urlsplit(url)
        is_complete = parts.scheme in _SCHEMES and parts.hostname and (parts.port is None or parts.port)
    except ValueError:
        is_complete = False
    if not is_complete or parts.query or parts.fragment or parts.username is not None:
        # Not what was found: an address can carry a password.
        raise LiveboardError(f"{expected}, found something else")
    path = parts.path.rstrip("/").removesuffix("/ws")
    key = psk if isinstance(psk, Secret) else Secret(psk)
    # HTTP carries no other characters, and the errors of those who try show the key.
    if not key.reveal().isprintable() or max(key.reveal()) > "\xff":
        raise LiveboardError("psk: expected a key of printable Latin-1 characters, found others")
    scheme = _SCHEMES[parts.scheme]
    return Address(f"{scheme}://{parts.netloc}{path}", key, _trusting(ca_file) if scheme == "https" else None)


def _trusting(ca_file: str | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca_file or None)
    except (ssl.SSLError, OSError) as error:
        reason = "it has none" if isinstance(error, ssl.SSLError) else error.strerror
        raise LiveboardError(f"ca_file: expected a PEM file with authorities, found {ca_file}: {reason}") from None


def untrusted(url: str, error: ssl.SSLCertVerificationError) -> Unreachable:
    """What is said of a server whose certificate is not trusted."""
    expected = "expected a certificate of a trusted authority (ca_file, or SSL_CERT_FILE)"
    return Unreachable(f"{url}: {expected}, found: {error.verify_message}")
