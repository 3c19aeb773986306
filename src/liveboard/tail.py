"""`liveboard tail`: a table's changes as lines of text or JSON."""

import sys
import time
from collections.abc import Callable, Iterator, Sequence

import orjson

from liveboard.config import Settings
from liveboard.config_document import nearest
from liveboard.contract.changelog import Value, decode_row
from liveboard.contract.schema import Column
from liveboard.contract.tables import all_columns
from liveboard.errors import LiveboardError
from liveboard.kafka import address, security
from liveboard.kafka.board import follow
from liveboard.kafka.reader import Change

_LAST_ROWS = 10
_PATIENCE_S = 3.0

Lines = Callable[[Sequence[Change]], Iterator[str]]


def run(settings: Settings, table: str, *, from_start: bool, as_json: bool, limit: int | None) -> None:
    """Prints the table's last changes, or all that there are, and those that come, up to `limit`."""
    tables = all_columns(settings.board)
    if table not in tables:
        raise LiveboardError(
            f'expected a table ({", ".join(tables)}), found "{table}", did you mean {nearest(table, tables)}?'
        )
    bootstrap = address.reachable(address.bootstrap(settings))
    client_config = security.librdkafka(settings.kafka, bootstrap)
    lines = json_lines(table, tables[table]) if as_json else text_lines(tables[table])
    printed, started, told = 0, time.monotonic(), False
    for kept, changes in follow(client_config, [table], None if from_start else _LAST_ROWS):
        if kept is None and not told and time.monotonic() - started > _PATIENCE_S:
            print(f"liveboard: {table} does not exist yet: waiting for the pipeline", file=sys.stderr)
            told = True
        wanted = changes[: limit - printed] if limit else changes
        for line in lines(wanted):
            print(line)
        if wanted:
            sys.stdout.flush()
        printed += len(wanted)
        if printed == limit:
            return


def json_lines(table: str, columns: Sequence[Column]) -> Lines:
    """One object per change, with the whole row by column name, or null for a removed one."""
    names = [column.name for column in columns]

    def lines(changes: Sequence[Change]) -> Iterator[str]:
        for change in changes:
            row = change.value and dict(zip(names, decode_row(change.value, columns), strict=True))
            yield orjson.dumps({"table": table, "key": change.key.decode(), "row": row}).decode()

    return lines


def text_lines(columns: Sequence[Column]) -> Lines:
    """One row per change under one heading, in columns that grow when a value needs it."""
    names = [column.name for column in columns]
    widths = [len(name) for name in names]
    heading = [names]

    def lines(changes: Sequence[Change]) -> Iterator[str]:
        rows = [_texts(change, columns) for change in changes]
        for row in rows:
            widths[:] = map(max, widths, map(len, row)) if len(row) == len(columns) else widths
        for row in [*heading, *rows] if rows else []:
            yield "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=False)).rstrip()
        if rows:
            heading.clear()

    return lines


def _texts(change: Change, columns: Sequence[Column]) -> list[str]:
    if change.value is None:
        return [f"removed: {change.key.decode()}"]
    return [_text(value) for value in decode_row(change.value, columns)]


def _text(value: Value) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    # Data must not be able to steer the terminal.
    return "".join(c if c.isprintable() else "·" for c in str(value))
