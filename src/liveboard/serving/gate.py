"""Lets connections in: the right origin, the right key, and not too many tries."""

from __future__ import annotations

import logging
import math
from collections.abc import Awaitable, Callable, Sequence
from urllib.parse import urlsplit

from starlette.requests import HTTPConnection, Request
from starlette.responses import Response

from liveboard.contract.frames import Code, FrameError, Role
from liveboard.serving.auth import Grant, Keys, bearer
from liveboard.serving.metrics import Counters
from liveboard.serving.throttle import Throttle

_PORTS = {"http": 80, "https": 443}

_log = logging.getLogger(__name__)

Endpoint = Callable[[Request, Grant], Awaitable[Response]]
"""Answers a request of somebody whose key allows this much."""


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

    def with_key(self, endpoint: Endpoint, role: Role = Role.VIEWER) -> Callable[[Request], Awaitable[Response]]:
        """The endpoint, for those who bring a key of the role; the others get an error."""

        async def checked(request: Request) -> Response:
            if request.method not in ("GET", "HEAD"):
                self.check_origin(request)
            key = bearer(request.headers.get("authorization"))
            if key is None:
                self._counters.refused()
                raise FrameError(
                    Code.UNAUTHORIZED, "expected the header Authorization: Bearer <key>, found another or none"
                )
            grant = await self.grant(request, key)
            if role is Role.ADMIN and grant.role is not Role.ADMIN:
                raise Forbidden(f"expected a key with the role admin, found one with the role {grant.role}")
            return await endpoint(request, grant)

        return checked

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
