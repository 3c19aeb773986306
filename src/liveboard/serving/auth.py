"""Who may look, at what, and who may change the board.

A key is compared by a digest that only this process can make, so neither its length nor how wrong it is shows in the
time that it takes. Keys that are kept as hashes are slow to check on purpose: that happens in a thread of its own, one
after the other, and once per key, since a key that was right is known from then on.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import ipaddress
import secrets
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from liveboard.config import Secret, ServerSettings
from liveboard.contract.errors import LiveboardError
from liveboard.contract.frames import Code, FrameError, Role
from liveboard.serving import hashes

LEAST_KEY_LENGTH = 16
_MAX_CHECKS = 32


@dataclass(frozen=True)
class Grant:
    """What a key allows; `tables` is None where it shows all."""

    name: str
    role: Role
    tables: frozenset[str] | None = None
    defined: Mapping[str, Collection[str]] = field(default_factory=dict, compare=False, repr=False)
    """The views that admins have defined by now, and the tables that each reads: who sees these sees the view."""

    def shows(self, table: str) -> bool:
        """Whether the key shows the table."""
        return self.tables is None or self.tables.issuperset(self.defined.get(table, (table,)))


class Keys:
    """The keys of a server; belongs to its event loop."""

    def __init__(self, server: ServerSettings, defined: Mapping[str, Collection[str]] | None = None) -> None:
        check_keys(server)
        self._salt = secrets.token_bytes(32)
        self._known: dict[bytes, Grant] = {}
        self._hashed: dict[Secret, Grant] = {}
        self._checks = 0
        self._thread = ThreadPoolExecutor(1, "keys")
        views = {} if defined is None else defined
        if server.psk:
            self._known[self._digest(server.psk.reveal())] = Grant("psk", Role.ADMIN)
        for key in server.keys.values():
            grant = Grant(key.name, Role(key.role), frozenset(key.tables) or None, views)
            if key.key:
                self._known[self._digest(key.key.reveal())] = grant
            else:
                self._hashed[key.hash] = grant

    async def grant(self, text: str) -> Grant | None:
        """What the key allows; None if there is no such key. A FrameError if too many are being checked."""
        digest = self._digest(text)
        if (grant := self._found(digest)) or not self._hashed:
            return grant
        if self._checks >= _MAX_CHECKS:
            raise FrameError(Code.OVERLOADED, "expected fewer logins at a time, found too many; try again later")
        self._checks += 1
        try:
            grant = await asyncio.get_running_loop().run_in_executor(self._thread, self._checked, text)
        finally:
            self._checks -= 1
        if grant:
            self._known[digest] = grant
        return grant

    def stop(self) -> None:
        """Lets the thread go."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _checked(self, text: str) -> Grant | None:
        return next((grant for kept, grant in self._hashed.items() if hashes.matches(kept, text)), None)

    def _found(self, digest: bytes) -> Grant | None:
        # All of them, wherever the right one is.
        found = [grant for known, grant in tuple(self._known.items()) if hmac.compare_digest(known, digest)]
        return found[0] if found else None

    def _digest(self, text: str) -> bytes:
        # Surrogates can come in from JSON.
        return hmac.digest(self._salt, text.encode("utf-8", "surrogatepass"), hashlib.sha256)


def bearer(authorization: str | None) -> str | None:
    """The key in an Authorization header, `Bearer <key>`; None if there is none."""
    scheme, _, text = (authorization or "").partition(" ")
    return text.strip() if scheme.lower() == "bearer" else None


def check_keys(server: ServerSettings) -> None:
    """A LiveboardError if a server with these settings would be open to anyone, or to anyone who tries for a while."""
    if not server.psk and not server.keys:
        raise LiveboardError(
            "server.psk: expected the key that viewers need, found nothing; set LIVEBOARD_SERVER_PSK, or "
            "LIVEBOARD_SERVER_PSK_FILE to a file that has it, or server.keys"
        )
    if is_loopback(server.host):
        return
    named = {"server.psk": server.psk} | {f"server.keys.{key.name}.key": key.key for key in server.keys.values()}
    for name, key in named.items():
        if key and len(key.reveal()) < LEAST_KEY_LENGTH:
            raise LiveboardError(
                f"{name}: expected at least {LEAST_KEY_LENGTH} characters, because server.host {server.host} lets "
                f"other machines in and a short key can be guessed, found {len(key.reveal())}; `liveboard key` makes "
                "one, or set server.host to 127.0.0.1"
            )


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches the host."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
