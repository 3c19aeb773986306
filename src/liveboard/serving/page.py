"""The page's files, built by `make setup`; every other path of a browser is a deep link into the page."""

from __future__ import annotations

import gzip
import mimetypes
import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Match, Route
from starlette.types import Scope

_PACKAGE = Path(__file__).parents[1]
# In an installed package, and in a checkout.
_PLACES = (_PACKAGE / "page", _PACKAGE.parents[1] / "web" / "app" / "dist")
_INDEX = "index.html"
_SERVER_PATHS = ("api", "ws", "metrics", "healthz", "readyz")
_HASHED = re.compile(r"-[A-Z0-9]{8}\.\w+$")
_COMPRESSED = ("text/", "application/javascript", "application/json", "image/svg+xml")
_NOT_BUILT = (
    "expected the built page beside the server, found none: run `make setup` in the checkout; "
    "the tables are served all the same, over /ws and /api\n"
)
# AG Grid brings its styles and its icons inside its script; not every browser takes a WebSocket for its page's 'self'.
_POLICY = (
    "default-src 'self'; style-src 'self' 'unsafe-inline'; font-src 'self' data:; img-src 'self' data:; "
    "connect-src 'self'{sockets}; object-src 'none'; base-uri 'self'; form-action 'self'; frame-ancestors {ancestors}"
)
_EMBEDDED = "embed"
"""The first part of the paths that other sites may show in a frame."""
_HOST = re.compile(r"[A-Za-z0-9.-]+(:[0-9]+)?|\[[0-9A-Fa-f:.]+\](:[0-9]+)?")


class Page:
    """The files of one folder."""

    def __init__(self, folder: Path | None = None, ancestors: Sequence[str] = ()) -> None:
        self._ancestors = " ".join(ancestors)
        self._folder = folder or next((place for place in _PLACES if (place / _INDEX).is_file()), _PLACES[-1])

    def route(self) -> Route:
        """All paths but the server's own."""
        return _PageRoute("/{path:path}", self.file)

    async def file(self, request: Request) -> Response:
        """A file, or the page itself for a path that looks like no file."""
        path: str = request.path_params["path"]
        file = (self._folder / path).resolve()
        if not (file.is_relative_to(self._folder.resolve()) and file.is_file()):
            if "." in path.rpartition("/")[2]:
                raise HTTPException(404)
            file = self._folder / _INDEX
        if not file.is_file():
            return PlainTextResponse(_NOT_BUILT, 503)
        zipped = "gzip" in request.headers.get("accept-encoding", "")
        answer = await run_in_threadpool(_response, file, zipped)
        if file.name == _INDEX:
            self._protect(answer, path, request.headers.get("host", ""))
        return answer

    def _protect(self, answer: Response, path: str, host: str) -> None:
        """Says what the page may do, and who may show it in a frame: nobody, but for the paths that are made for it."""
        framed = self._ancestors if path.partition("/")[0] == _EMBEDDED else ""
        sockets = f" ws://{host} wss://{host}" if _HOST.fullmatch(host) else ""
        answer.headers["Content-Security-Policy"] = _POLICY.format(sockets=sockets, ancestors=framed or "'none'")


class _PageRoute(Route):
    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        # Clients may send a target without any slash.
        if scope["path"].removeprefix("/").partition("/")[0] in _SERVER_PATHS:
            return Match.NONE, {}
        return super().matches(scope)


def _response(file: Path, zipped: bool) -> Response:
    media_type = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
    if media_type == "text/javascript":
        media_type = "application/javascript"
    headers = {
        "Cache-Control": "public, max-age=31536000, immutable" if _HASHED.search(file.name) else "no-cache",
    }
    zipped = zipped and media_type.startswith(_COMPRESSED)
    if media_type.startswith(_COMPRESSED):
        headers["Vary"] = "Accept-Encoding"
    if zipped:
        headers["Content-Encoding"] = "gzip"
    return Response(_content(file, file.stat().st_mtime_ns, zipped), 200, headers, media_type)


@lru_cache(maxsize=64)
def _content(file: Path, _changed: int, zipped: bool) -> bytes:
    content = file.read_bytes()
    return gzip.compress(content) if zipped else content
