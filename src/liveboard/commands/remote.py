"""What the commands ask of a running server: `tables`, `query`, `export`, and with --url `tail` and `swap`."""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import orjson
from rich.box import ROUNDED
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from liveboard.client.address import Address, address
from liveboard.client.api import Api
from liveboard.client.subscription import DEFAULT_WINDOW, ask
from liveboard.client.synchronous import opened
from liveboard.client.table import QueryResult
from liveboard.client.update import Row, Update
from liveboard.commands import access
from liveboard.commands.swap import outcome
from liveboard.commands.tail import Lines, cell_text, json_lines, text_lines
from liveboard.config import Settings
from liveboard.contract.control import control_message
from liveboard.contract.errors import LiveboardError
from liveboard.contract.frames import WireColumn
from liveboard.contract.names import CONTROL_TABLE, EXPORT_FORMATS, STATUS_TABLE
from liveboard.contract.schema import TS
from liveboard.contract.types import wire_column_type

_TEXTS = ("csv", "json")
_NEWEST_ROWS = 1_000
_FIRST_ROWS = 10
_WATCHED_ROWS = 200
_WIDE = 10_000
Show = Callable[[str], None]


def server_address(settings: Settings, url: str | None, key: str | None, ca_file: Path | None = None) -> Address:
    """The server that is meant: the given one, or the one that `up` runs here, or that of the settings."""
    known = access.recall(settings)
    if url is None and not known.url:
        raise LiveboardError("--url: expected the address of the server, because server.port is 0, found nothing")
    return address(url or known.url, key or known.key, str(ca_file or settings.server.ca_file))


def table_lines(where: Address) -> Iterator[str]:
    """Every table in a line: its name, how many rows it has, its columns."""
    tables = Api(where).tables()
    width = max((len(table.name) for table in tables), default=0)
    for table in tables:
        columns = ", ".join(f"{column.name} {column.type}" for column in table.columns)
        yield f"{table.name:{width}}  {table.rows:>11,} rows  {columns}"


def export(where: Address, table: str, format: str | None, output: Path | None) -> None:
    """Writes a table to the file, all of it or nothing, or to stdout; the format is that of the file's name, or csv."""
    suffix = output.suffix.removeprefix(".").lower() if output else ""
    format = format or (suffix if suffix in EXPORT_FORMATS else "csv")
    asked = ask(table, DEFAULT_WINDOW, None, None, None, None)
    if output is None:
        if format not in _TEXTS and sys.stdout.isatty():
            raise LiveboardError(f"--output: expected a file, because a terminal cannot show {format}, found nothing")
        Api(where).export(asked, format, sys.stdout.buffer)
        sys.stdout.flush()
        return
    part = output.with_name(f"{output.name}.part")
    try:
        with part.open("wb") as file:
            Api(where).export(asked, format, file)
        part.replace(output)
    except OSError as error:
        raise LiveboardError(f"--output: expected to write {output}, found: {error.strerror}") from None
    finally:
        part.unlink(missing_ok=True)


def query(where: Address, sql: str, *, watch: bool, as_json: bool) -> None:
    """Prints the answer to a SELECT, and with `watch` again whenever it has changed."""
    if not watch:
        result = QueryResult(*Api(where).query(sql))
        _print_rows(result.columns, result.rows(), as_json)
        return
    console = Console()
    with opened(where) as client:
        for update in client.query_updates(sql, (0, _WATCHED_ROWS)):
            if as_json or not console.is_terminal:
                _print_rows(update.columns, update.rows, as_json)
            else:
                console.clear()
                _print_rows(update.columns, update.rows, as_json)
            if update.problem:
                print(f"liveboard: {update.problem}", file=sys.stderr, flush=True)


def _print_rows(columns: Sequence[WireColumn], rows: Sequence[Row], as_json: bool) -> None:
    names = [column.name for column in columns]
    if as_json:
        for row in rows:
            print(orjson.dumps(dict(zip(names, row, strict=True)), default=_json_value).decode())
        sys.stdout.flush()
        return
    # Data must not be able to steer the terminal, and is no markup of Rich's.
    shown = RichTable(box=ROUNDED)
    for column in columns:
        shown.add_column(Text(cell_text(column.name)), justify=wire_column_type(column.type).align)
    for row in rows:
        shown.add_row(*(Text(cell_text(value)) for value in row))
    Console(width=None if sys.stdout.isatty() else _WIDE).print(shown)


def _json_value(value: object) -> object:
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)


def tail(where: Address, table: str, *, as_json: bool, limit: int | None) -> None:
    """Prints the newest rows of the table and, for ever or up to `limit`, those that come or change among them."""
    last: dict[str, Row] = {}
    printed = 0
    lines: Lines | None = None
    sort = [(TS.name, "desc")] if _has_ts(where, table) else None
    with opened(where) as client:
        for update in client.updates(table, (0, _NEWEST_ROWS), sort=sort):
            names = [column.name for column in update.columns]
            lines = lines or (json_lines(table, names) if as_json else text_lines(names))
            rows = dict(zip(update.keys, update.rows, strict=True))
            changed = [(key, row) for key, row in reversed(rows.items()) if last.get(key) != row]
            changed = changed if last else changed[-_FIRST_ROWS:]
            changed = changed[: limit - printed] if limit else changed
            for line in lines(changed):
                print(line, flush=True)
            last, printed = rows, printed + len(changed)
            if limit and printed >= limit:
                return


def swap(where: Address, topics: Mapping[str, str], joins: Mapping[str, str], *, wait: bool, show: Show) -> str:
    """As `commands.swap.run`, by way of a server: sends the control message, and waits for its end if wanted."""
    with opened(where) as client:
        message = control_message(topics, joins)
        place = Api(where).control(message)
        if not wait:
            return f"sent as message {place} of the control topic: {json.dumps(message)}"
        client.subscribe(STATUS_TABLE, lambda update: _show_message(update, show))
        partition, offset = map(int, place.split("-"))
        for update in client.updates(CONTROL_TABLE, filter=[["partition", "=", partition], ["offset", "=", offset]]):
            for record in update.records():
                if end := outcome(str(record["verdict"]), record["reason"]):
                    return end
    raise LiveboardError("the connection ended before the swap did")


def _has_ts(where: Address, table: str) -> bool:
    return any(info.name == table and info.columns[-1].name == TS.name for info in Api(where).tables())


def _show_message(update: Update, show: Show) -> None:
    for record in update.records():
        if record["message"]:
            show(str(record["message"]))
