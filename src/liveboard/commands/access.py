"""Where the live-table server that `liveboard up` runs answers, and with which key."""

from __future__ import annotations

import json
import os
import socket
import urllib.parse
from dataclasses import dataclass, field
from pathlib import Path

from liveboard.config import Secret, ServerSettings, Settings
from liveboard.contract.errors import LiveboardError
from liveboard.serving.auth import check_keys, is_loopback
from liveboard.serving.hashes import new_key
from liveboard.serving.login import make_token
from liveboard.serving.port import listening

_FILE = "server.json"
_KEY_FILE = "key"
_CONNECT_TIMEOUT_S = 1.0
# Addresses to listen on that nobody can connect to.
_ANY_HOST = {"0.0.0.0": "127.0.0.1", "::": "::1"}


@dataclass(frozen=True)
class Access:
    """An address with its key."""

    url: str
    key: str = field(repr=False)


def choose(settings: Settings) -> tuple[Access, int]:
    """The configured address and key, or a free port and the storage's own key where they are left open; and the port.

    A LiveboardError if the port is not free.
    """
    server = settings.server
    if server.psk or server.keys:
        check_keys(server)
    elif not is_loopback(server.host):
        raise LiveboardError(
            "server.psk: expected a key, because server.host lets other machines in, found nothing; set "
            "LIVEBOARD_SERVER_PSK, or server.host to 127.0.0.1"
        )
    port = _free_port(server.host, server.port)
    return Access(_url(server, port), (server.psk or _own_key(settings.storage.dir)).reveal()), port


def remember(settings: Settings, access: Access) -> None:
    """Lets `recall` find the server; only the user of this process can read it."""
    _write_secret(settings.storage.dir / _FILE, json.dumps({"url": access.url, "key": access.key}))


def recall(settings: Settings) -> Access:
    """The configured server; what is not configured is as `up` chose it last. Empty where nothing tells."""
    server, key = settings.server, settings.server.psk.reveal()
    configured = Access(_url(server, server.port) if server.port else "", key)
    if configured.url and key:
        return configured
    try:
        found = json.loads(Path(settings.storage.dir / _FILE).read_text())
        return Access(configured.url or found["url"], key or found["key"])
    except (OSError, ValueError, KeyError):
        return configured


def answers(access: Access) -> bool:
    """Whether somebody takes connections at the address."""
    place = urllib.parse.urlsplit(access.url)
    try:
        socket.create_connection((place.hostname, place.port), _CONNECT_TIMEOUT_S).close()
    except OSError:
        return False
    return True


def login_link(access: Access) -> str:
    """An address that logs a browser in, once."""
    return f"{access.url}/#login={make_token(Secret(access.key))}"


def _url(server: ServerSettings, port: int) -> str:
    host, scheme = _ANY_HOST.get(server.host, server.host), "https" if server.tls_cert_file else "http"
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def _own_key(directory: Path) -> Secret:
    """The key that was made for the storage, the same at every start."""
    file = directory / _KEY_FILE
    try:
        if kept := file.read_text().strip():
            return Secret(kept)
    except OSError:
        pass
    made = new_key()
    directory.mkdir(parents=True, exist_ok=True)
    _write_secret(file, made.reveal())
    return made


def _write_secret(file: Path, text: str) -> None:
    """Writes what only the user of this process may read."""
    file.unlink(missing_ok=True)
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as output:
        output.write(text)


def _free_port(host: str, port: int) -> int:
    """The port, or any free one for 0."""
    with listening(host, port) as found:
        return int(found.getsockname()[1])
