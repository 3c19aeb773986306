"""Lets connections in: the right origin, the right key, and not too many tries."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from urllib.parse import urlsplit

from starlette.requests import HTTPConnection

from liveboard.contract.frames import Code, FrameError
from liveboard.serving.auth import Grant, Keys
from liveboard.serving.metrics import Counters
from liveboard.serving.throttle import Throttle

_PORTS = {"http": 80, "https": 443}

_log = logging.getLogger(__name__)


class Gate:
    """What every way into the server asks first; belongs to its event loop."""

    def __init__(self, keys: Keys, throttle: Throttle, origins: Sequence[str], counters: Counters) -> None:
        self._keys = keys
        self._throttle = throttle
        self._origins = frozenset(origins)
        self._counters = counters

    def check_origin(self, connection: HTTPConnection) -> None:
        """A Forbidden if a page of another origin asks. Clients other than browsers name no origin, and pass."""
        origin = connection.headers.get("origin")
        if origin is None or origin in self._origins or _is_own(origin, connection.headers.get("host", "")):
            return
        self._counters.refused()
        raise Forbidden("expected a page of this server or of server.origins, found another one")

    def check_pace(self, connection: HTTPConnection) -> None:
        """A TooFast if the address has tried too many wrong keys."""
        wait_s = self._throttle.wait_s(_address(connection))
        if wait_s:
            self._counters.slowed()
            raise TooFast(math.ceil(wait_s))

    async def grant(self, connection: HTTPConnection, key: str) -> Grant:
        """What the key allows; otherwise a FrameError, and the address has one try less."""
        self.check_pace(connection)
        found = await self._keys.grant(key)
        if found is None:
            self.failed(connection)
            raise FrameError(Code.UNAUTHORIZED, "expected a key of the server, found another")
        return found

    def failed(self, connection: HTTPConnection) -> None:
        """Counts a try that was wrong."""
        self._counters.refused()
        self._throttle.failed(_address(connection))
        _log.warning("wrong key", extra={"client": _address(connection)})


class Forbidden(Exception):
    """Who it is, or where it comes from, may not do that."""


class TooFast(FrameError):
    """Too many wrong keys came from the address."""

    def __init__(self, wait_s: int) -> None:
        super().__init__(Code.OVERLOADED, f"expected fewer wrong keys from this address; try again in {wait_s} s")
        self.wait_s = wait_s


def _is_own(origin: str, host: str) -> bool:
    # The scheme is that of the page, which a proxy may have changed on the way here.
    try:
        page = urlsplit(origin)
        own = urlsplit(f"//{host}")
        default = _PORTS.get(page.scheme)
        ports = (page.port or default, own.port or default)
    except ValueError:
        return False
    return bool(page.hostname) and default is not None and page.hostname == own.hostname and ports[0] == ports[1]


def _address(connection: HTTPConnection) -> str | None:
    return connection.client.host if connection.client else None
