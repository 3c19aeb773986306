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
from collections.abc import Awaitable, Callable, Sequence

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.types import Lifespan

from liveboard import __version__
from liveboard.config import LimitSettings
from liveboard.contract import frames
from liveboard.contract.errors import LiveboardError
from liveboard.contract.frames import Code, FrameError, Role
from liveboard.contract.joins import JOIN_KINDS
from liveboard.serving.auth import Grant, bearer
from liveboard.serving.catalogue import Catalogue
from liveboard.serving.chart import chart_ask
from liveboard.serving.export import Exports
from liveboard.serving.feed_health import FeedHealth
from liveboard.serving.gate import Forbidden, Gate, TooFast
from liveboard.serving.keeping import Keeping
from liveboard.serving.limits import check_window
from liveboard.serving.lineage import Lineage
from liveboard.serving.login import Logins
from liveboard.serving.metrics import CONTENT_TYPE, Counters
from liveboard.serving.page import Page
from liveboard.serving.preview import Previews
from liveboard.serving.pulse import Pulses
from liveboard.serving.query import compile_query
from liveboard.serving.readiness import Readiness
from liveboard.serving.reception import Reception
from liveboard.serving.saved import place_of
from liveboard.serving.sql_views import SqlViews
from liveboard.serving.table import Table
from liveboard.serving.topic_writer import TopicWriter
from liveboard.serving.topics import Topics
from liveboard.serving.views import Views

_MAX_CONTROL_BYTES = 64 * 1024
_HTTP_STATUS = {
    Code.UNAUTHORIZED: 401,
    Code.UNKNOWN_TABLE: 404,
    Code.TOO_MANY: 429,
    Code.OVERLOADED: 503,
}
_STATUS_CODES = {403: "forbidden", 404: "not_found", 405: "bad_method"}

Endpoint = Callable[[Request, Grant], Awaitable[Response]]


class Routes:
    """The endpoints of one server."""

    def __init__(
        self,
        gate: Gate,
        logins: Logins,
        reception: Reception,
        catalogue: Catalogue,
        views: Views,
        health: FeedHealth,
        readiness: Readiness,
        control: TopicWriter,
        keeping: Keeping,
        topics: Topics,
        exports: Exports,
        counters: Counters,
        page: Page,
        limits: LimitSettings,
        lineage: Lineage,
        previews: Previews,
        sql: SqlViews,
    ) -> None:
        self._gate = gate
        self._logins = logins
        self._reception = reception
        self._catalogue = catalogue
        self._views = views
        self._health = health
        self._readiness = readiness
        self._control = control
        self._keeping = keeping
        self._topics = topics
        self._exports = exports
        self._counters = counters
        self._page = page
        self._limits = limits
        self._lineage = lineage
        self._previews = previews
        self._sql = sql
        self._pulses = Pulses(catalogue, sql.lags)

    def app(self, middleware: Sequence[Middleware], lifespan: Lifespan[Starlette]) -> Starlette:
        """The whole of it."""
        routes: list[BaseRoute] = [
            WebSocketRoute("/ws", self._reception.serve),
            Route("/api/tables", self._with_key(self.tables)),
            Route("/api/tables/{name}", self._with_key(self.window)),
            Route("/api/tables/{name}/export", self._with_key(self.export)),
            Route("/api/tables/{name}/chart", self._with_key(self.chart)),
            Route("/api/tables/{name}/row", self._with_key(self.row)),
            Route("/api/query", self._with_key(self.query), methods=["POST"]),
            Route("/api/pulse", self._with_key(self.pulse)),
            Route("/api/views", self._with_key(self.saved), methods=["GET", "PUT", "DELETE"]),
            Route("/api/control", self._with_key(self.control, Role.ADMIN), methods=["POST"]),
            Route("/api/topics", self._with_key(self.topics, Role.ADMIN)),
            Route("/api/preview", self._with_key(self.preview, Role.ADMIN)),
            Route("/api/login", self.login, methods=["POST"]),
            Route("/healthz", self.health),
            Route("/readyz", self.readiness),
            Route("/metrics", self.metrics),
            self._page.route(),
        ]
        handlers = {
            FrameError: _frame_error,
            Forbidden: _forbidden,
            HTTPException: _http_error,
            Exception: _failure,
        }
        return Starlette(
            routes=routes,
            middleware=middleware,
            lifespan=lifespan,
            exception_handlers=handlers,  # type: ignore[arg-type]
        )

    async def tables(self, request: Request, grant: Grant) -> Response:
        """The tables that names mean."""
        return _json({"generation": self._catalogue.live, "tables": self._catalogue.infos(grant)})

    async def window(self, request: Request, grant: Grant) -> Response:
        """A window of a table, as a snapshot has it."""
        asked = _asked(request)
        table = await self._found(grant, asked.table, asked.generation)
        check_window(asked.offset, asked.size, self._limits)
        order = asked.order if table.has_newest else "arrival"
        query = compile_query(table.columns, asked.sort, asked.filter, asked.search, self._limits, order)
        listener = _Once()
        window = self._views.open(table, query, asked.offset, asked.size, listener)
        try:
            if not window.is_ready:
                await listener.heard.wait()
            return Response(f"{{{window.content()}}}", media_type="application/json")
        finally:
            self._views.close(window, listener)

    async def export(self, request: Request, grant: Grant) -> Response:
        """A whole table, or all rows of a view, as a file."""
        asked = _asked(request, "format")
        if named := [name for name in ("offset", "size", "order") if name in request.query_params]:
            message = "expected no offset, size or order, since an export has all rows in order of arrival, found one"
            raise FrameError(Code.BAD_WINDOW, f"{message}: {named[0]}")
        table = await self._found(grant, asked.table, asked.generation)
        query = compile_query(table.columns, asked.sort, asked.filter, asked.search, self._limits)
        return await self._exports.response(table, query, request.query_params.get("format", "csv"))

    async def chart(self, request: Request, grant: Grant) -> Response:
        """A column of a table, or of all rows of a view, as a picture shows it."""
        asked = _asked(request, "column")
        table = await self._found(grant, asked.table, asked.generation)
        query = compile_query(table.columns, None, asked.filter, asked.search, self._limits)
        ask = chart_ask(table.columns, query, request.query_params.get("column", ""))
        return _json(await self._views.chart(table, ask))

    async def _found(self, grant: Grant, name: str, generation: str | None) -> Table:
        """A table to be read, as it is now."""
        await self._sql.bring_up_to_date(self._catalogue.find(grant, name, generation))
        return self._catalogue.find(grant, name, generation)

    async def saved(self, request: Request, grant: Grant) -> Response:
        """The views and boards that people keep."""
        try:
            if request.method in ("GET", "HEAD"):
                return _json({"views": await self._keeping.all(grant)})
            place = place_of(grant, request.query_params.multi_items())
            if request.method == "DELETE":
                await self._keeping.remove(grant, place)
            else:
                await self._keeping.put(grant, place, await _body(request, "view", self._limits.saved_bytes))
            return _json({})
        except FrameError:
            raise
        except LiveboardError as error:
            return _error(503, "unavailable", str(error))

    async def row(self, request: Request, grant: Grant) -> Response:
        """A row and the source records that it was made of."""
        asked = request.query_params
        if "key" not in asked:
            raise FrameError(Code.BAD_FRAME, "expected the parameter key, the key of a row, found none")
        name = request.path_params["name"]
        await self._found(grant, name, asked.get("generation"))
        return _json(await self._lineage.explain(grant, name, asked["key"], asked.get("generation")))

    async def query(self, request: Request, grant: Grant) -> Response:
        """The answer to a statement."""
        try:
            asked = msgspec.json.decode(await _body(request, "statement"), type=_Statement)
        except (msgspec.MsgspecError, UnicodeError) as error:
            raise FrameError(Code.BAD_SQL, f'expected {{"sql": "SELECT …"}}, found: {error}') from None
        columns, answer = await self._sql.ask(grant, asked.sql)
        head = msgspec.json.encode({"columns": frames.wire_columns(columns)})[:-1]
        rows = b",".join(row for _, _, row in answer.rows)
        return Response(head + b',"rows":[' + rows + b"]}", media_type="application/json")

    async def pulse(self, request: Request, grant: Grant) -> Response:
        """The server's time, how many events came, and what was rejected."""
        return _json(self._pulses.look(grant))

    async def preview(self, request: Request, grant: Grant) -> Response:
        """What a topic would bring to a source."""
        asked = request.query_params
        try:
            return _json(await self._previews.look(grant, asked.get("source", ""), asked.get("topic", "")))
        except LiveboardError as error:
            if isinstance(error, FrameError):
                raise
            return _error(503, "unavailable", str(error))

    async def control(self, request: Request, grant: Grant) -> Response:
        """Passes a control message on."""
        body = await _body(request)
        try:
            msgspec.json.decode(body, type=dict[str, object])
        except (msgspec.MsgspecError, UnicodeError) as error:
            return _error(400, "bad_message", f"expected a control message as a JSON object, found: {error}")
        try:
            partition, offset = await self._control.write(body)
        except LiveboardError as error:
            return _error(503, "unavailable", str(error))
        return _json({"partition": partition, "offset": offset}, 202)

    async def topics(self, request: Request, grant: Grant) -> Response:
        """What a control message can choose from."""
        try:
            return _json({"topics": await self._topics.names(), "joinKinds": JOIN_KINDS})
        except LiveboardError as error:
            return _error(503, "unavailable", str(error))

    async def login(self, request: Request) -> Response:
        """The key for the token of a login link."""
        self._gate.check_origin(request)
        self._gate.check_pace(request)
        try:
            asked = msgspec.json.decode(await _body(request), type=_Login)
        except (msgspec.MsgspecError, UnicodeError) as error:
            return _error(400, "bad_message", f"expected the token of a login link, found: {error}")
        key = await asyncio.to_thread(self._logins.exchange, asked.token)
        if key is None:
            self._gate.failed(request)
            raise FrameError(Code.UNAUTHORIZED, "expected a login link that is new, found one that is used or too old")
        return _json({"key": key.reveal()})

    async def health(self, request: Request) -> Response:
        """The process is there."""
        return _json({"status": "ok", "server": f"liveboard {__version__}"})

    async def readiness(self, request: Request) -> Response:
        """Whether viewers find what they expect here."""
        if lacking := self._readiness.lacking:
            return _error(503, "not_ready", lacking)
        # The last rows are better than none, and the other servers may be no better off.
        problem = {"problem": self._health.outage} if self._health.outage else {}
        return _json({"status": "ready", "generation": self._catalogue.live, **problem})

    async def metrics(self, request: Request) -> Response:
        """For Prometheus."""
        return Response(self._counters.text(), headers={"Content-Type": CONTENT_TYPE})

    def _with_key(self, endpoint: Endpoint, role: Role = Role.VIEWER) -> Callable[[Request], Awaitable[Response]]:
        async def checked(request: Request) -> Response:
            if request.method not in ("GET", "HEAD"):
                self._gate.check_origin(request)
            key = bearer(request.headers.get("authorization"))
            if key is None:
                self._counters.refused()
                raise FrameError(
                    Code.UNAUTHORIZED, "expected the header Authorization: Bearer <key>, found another or none"
                )
            grant = await self._gate.grant(request, key)
            if role is Role.ADMIN and grant.role is not Role.ADMIN:
                raise Forbidden(f"expected a key with the role admin, found one with the role {grant.role}")
            return await endpoint(request, grant)

        return checked


class _Login(msgspec.Struct, frozen=True):
    token: str


class _Statement(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    sql: str


class _Once:
    """Waits for a window's first content."""

    def __init__(self) -> None:
        self.heard = asyncio.Event()

    def changed(self) -> None:
        self.heard.set()


def _asked(request: Request, *but: str) -> frames.Subscribe:
    """The query parameters but these, read as strictly as a frame."""
    parameters = {name: text for name, text in request.query_params.items() if name not in but}
    fields: dict[str, object] = {"id": 0, "table": request.path_params["name"]}
    for name, text in parameters.items():
        if name in ("search", "generation", "order"):
            fields[name] = text
            continue
        try:
            fields[name] = msgspec.json.decode(text)
        except (msgspec.MsgspecError, UnicodeError):
            code = Code.BAD_FILTER if name in ("sort", "filter") else Code.BAD_WINDOW
            raise FrameError(code, f"{name}: expected JSON as on the wire, found {text[:100]!r}") from None
    try:
        return msgspec.convert(fields, frames.Subscribe)
    except msgspec.MsgspecError as error:
        raise FrameError(Code.BAD_FRAME, f"query parameters: {error}") from None


async def _body(request: Request, what: str = "control message", most: int = _MAX_CONTROL_BYTES) -> bytes:
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > most:
            raise HTTPException(413, f"expected a {what} of up to {most} bytes, found a larger one")
    return body


def _json(value: object, status: int = 200) -> Response:
    return Response(msgspec.json.encode(value), status, media_type="application/json")


def _error(status: int, code: str, message: str) -> Response:
    return _json({"error": {"code": code, "message": message}}, status)


async def _frame_error(request: Request, error: FrameError) -> Response:
    if isinstance(error, TooFast):
        answer = _error(429, Code.TOO_MANY, str(error))
        answer.headers["Retry-After"] = str(error.wait_s)
        return answer
    return _error(_HTTP_STATUS.get(error.code, 400), error.code, str(error))


async def _forbidden(request: Request, error: Forbidden) -> Response:
    return _error(403, "forbidden", str(error))


async def _http_error(request: Request, error: HTTPException) -> Response:
    return _error(error.status_code, _STATUS_CODES.get(error.status_code, "bad_request"), error.detail)


async def _failure(request: Request, error: Exception) -> Response:
    return _error(500, "internal", "expected an answer, found an error in the server, which its log has")
