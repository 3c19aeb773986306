"""What is asked of tables over HTTP: lists, windows, files, charts, rows and statements."""

from __future__ import annotations

import asyncio

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from liveboard.config import LimitSettings
from liveboard.contract import frames
from liveboard.contract.frames import Code, FrameError
from liveboard.serving.auth import Grant
from liveboard.serving.catalogue import Catalogue
from liveboard.serving.chart import chart_ask
from liveboard.serving.export import Exports
from liveboard.serving.gate import Gate
from liveboard.serving.limits import check_window
from liveboard.serving.lineage import Lineage
from liveboard.serving.pulse import Pulses
from liveboard.serving.query import compile_query
from liveboard.serving.responses import body_of, json_response
from liveboard.serving.sql_views import SqlViews
from liveboard.serving.table import Table
from liveboard.serving.views import Views


class TableRoutes:
    """The endpoints that read; each asks the gate for a key first."""

    def __init__(
        self,
        catalogue: Catalogue,
        views: Views,
        exports: Exports,
        lineage: Lineage,
        sql: SqlViews,
        limits: LimitSettings,
    ) -> None:
        self._catalogue = catalogue
        self._views = views
        self._exports = exports
        self._lineage = lineage
        self._sql = sql
        self._limits = limits
        self._pulses = Pulses(catalogue, sql.lags)

    def behind(self, gate: Gate) -> list[BaseRoute]:
        """All of them."""
        return [
            Route("/api/tables", gate.with_key(self.tables)),
            Route("/api/tables/{name}", gate.with_key(self.window)),
            Route("/api/tables/{name}/export", gate.with_key(self.export)),
            Route("/api/tables/{name}/chart", gate.with_key(self.chart)),
            Route("/api/tables/{name}/row", gate.with_key(self.row)),
            Route("/api/query", gate.with_key(self.query), methods=["POST"]),
            Route("/api/pulse", gate.with_key(self.pulse)),
        ]

    async def tables(self, request: Request, grant: Grant) -> Response:
        """The tables that names mean."""
        return json_response({"generation": self._catalogue.live, "tables": self._catalogue.infos(grant)})

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
        return json_response(await self._views.chart(table, ask))

    async def row(self, request: Request, grant: Grant) -> Response:
        """A row and the source records that it was made of."""
        asked = request.query_params
        if "key" not in asked:
            raise FrameError(Code.BAD_FRAME, "expected the parameter key, the key of a row, found none")
        name = request.path_params["name"]
        await self._found(grant, name, asked.get("generation"))
        return json_response(await self._lineage.explain(grant, name, asked["key"], asked.get("generation")))

    async def query(self, request: Request, grant: Grant) -> Response:
        """The answer to a statement."""
        try:
            asked = msgspec.json.decode(await body_of(request, "statement"), type=_Statement)
        except (msgspec.MsgspecError, UnicodeError) as error:
            raise FrameError(Code.BAD_SQL, f'expected {{"sql": "SELECT …"}}, found: {error}') from None
        columns, answer = await self._sql.ask(grant, asked.sql)
        head = msgspec.json.encode({"columns": frames.wire_columns(columns)})[:-1]
        rows = b",".join(row for _, _, row in answer.rows)
        return Response(head + b',"rows":[' + rows + b"]}", media_type="application/json")

    async def pulse(self, request: Request, grant: Grant) -> Response:
        """The server's time, how many events came, and what was rejected."""
        return json_response(self._pulses.look(grant))

    async def _found(self, grant: Grant, name: str, generation: str | None) -> Table:
        """A table to be read, as it is now."""
        await self._sql.bring_up_to_date(self._catalogue.find(grant, name, generation))
        return self._catalogue.find(grant, name, generation)


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
