"""What the server answers over HTTP, beside the WebSocket at /ws.

| path                  | key | what                                                                                |
|-----------------------|-----|-------------------------------------------------------------------------------------|
| GET /api/tables       | yes | the tables that names mean, and the live generation                                 |
| GET /api/tables/NAME  | yes | a window: offset, size, order, search, generation; sort and filter as JSON          |
| GET …/NAME/export    | yes | all rows as a file: format (csv, parquet, arrow, json), and as above without a window |
| GET …/NAME/chart     | yes | what there is to draw of a column: column, filter, search, generation                 |
| GET …/NAME/row       | yes | a row by its key, whole, and the source records that it was made of                   |
| POST /api/query       | yes | the answer to one SELECT over the tables that the key shows: {"sql": "…"}           |
| GET /api/pulse        | yes | the server's time, how many events came, and what was rejected                      |
| GET /api/views        | yes | the views and boards that the key sees: its own and the shared ones                 |
| PUT, DELETE /api/views | yes | keeps or removes one: kind, table, name, shared; shared ones and kind=sql: admins  |
| POST /api/control     | yes | passes a control message on; 202 with its partition and offset                      |
| GET /api/topics       | yes | the topics that a source may read, the kinds of joins; for admins, like the above   |
| GET /api/preview      | yes | what a topic would bring to a source: source, topic; for admins                     |
| POST /api/login       | no  | exchanges the token of a login link for the key, once                               |
| GET /healthz          | no  | the process is there                                                                |
| GET /readyz           | no  | the board's status is known and every table is there                                |
| GET /metrics          | no  | for Prometheus                                                                      |
| GET /…                | no  | the page                                                                            |

A key shows its own tables only. All others are answered as if they did not exist. Every error is
`{"error":{"code":…,"message":…}}`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.types import Lifespan

from liveboard import __version__
from liveboard.contract.frames import Code, FrameError
from liveboard.serving.board_routes import BoardRoutes
from liveboard.serving.gate import Gate
from liveboard.serving.login import Logins
from liveboard.serving.metrics import CONTENT_TYPE, Counters
from liveboard.serving.page import Page
from liveboard.serving.readiness import Readiness
from liveboard.serving.reception import Reception
from liveboard.serving.responses import ERROR_HANDLERS, body_of, error_response, json_response
from liveboard.serving.table_routes import TableRoutes


class Routes:
    """All endpoints of one server, and those that need no key."""

    def __init__(
        self,
        gate: Gate,
        logins: Logins,
        reception: Reception,
        tables: TableRoutes,
        board: BoardRoutes,
        readiness: Readiness,
        counters: Counters,
        page: Page,
    ) -> None:
        self._gate = gate
        self._logins = logins
        self._reception = reception
        self._tables = tables
        self._board = board
        self._readiness = readiness
        self._counters = counters
        self._page = page

    def app(self, middleware: Sequence[Middleware], lifespan: Lifespan[Starlette]) -> Starlette:
        """The whole of it."""
        routes: list[BaseRoute] = [
            WebSocketRoute("/ws", self._reception.serve),
            *self._tables.behind(self._gate),
            *self._board.behind(self._gate),
            Route("/api/login", self.login, methods=["POST"]),
            Route("/healthz", self.health),
            Route("/readyz", self.readiness),
            Route("/metrics", self.metrics),
            self._page.route(),
        ]
        return Starlette(
            routes=routes,
            middleware=middleware,
            lifespan=lifespan,
            exception_handlers=ERROR_HANDLERS,  # type: ignore[arg-type]
        )

    async def login(self, request: Request) -> Response:
        """The key for the token of a login link."""
        self._gate.check_origin(request)
        self._gate.check_pace(request)
        try:
            asked = msgspec.json.decode(await body_of(request), type=_Login)
        except (msgspec.MsgspecError, UnicodeError) as error:
            return error_response(400, "bad_message", f"expected the token of a login link, found: {error}")
        key = await asyncio.to_thread(self._logins.exchange, asked.token)
        if key is None:
            self._gate.failed(request)
            raise FrameError(Code.UNAUTHORIZED, "expected a login link that is new, found one that is used or too old")
        return json_response({"key": key.reveal()})

    async def health(self, request: Request) -> Response:
        """The process is there."""
        return json_response({"status": "ok", "server": f"liveboard {__version__}"})

    async def readiness(self, request: Request) -> Response:
        """Whether viewers find what they expect here."""
        if lacking := self._readiness.lacking:
            return error_response(503, "not_ready", lacking)
        # The last rows are better than none, and the other servers may be no better off.
        problem = {"problem": self._readiness.outage} if self._readiness.outage else {}
        return json_response({"status": "ready", "generation": self._readiness.live, **problem})

    async def metrics(self, request: Request) -> Response:
        """For Prometheus."""
        return Response(self._counters.text(), headers={"Content-Type": CONTENT_TYPE})


class _Login(msgspec.Struct, frozen=True):
    token: str
