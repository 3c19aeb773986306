"""`liveboard tail`: a table's changes as lines of text or JSON."""

import sys
import time
from collections.abc import Callable, Iterator, Sequence

import orjson

from liveboard.config import Settings
from liveboard.contract.changelog import decode_row
from liveboard.contract.errors import LiveboardError, nearest
from liveboard.contract.tables import all_columns
from liveboard.kafka import address, security
from liveboard.kafka.board import follow

_LAST_ROWS = 10
_PATIENCE_S = 3.0

Changed = tuple[str, Sequence[object] | None]
"""The key of a row and its new values, or None for its removal."""
Lines = Callable[[Sequence[Changed]], Iterator[str]]


def run(settings: Settings, table: str, *, from_start: bool, as_json: bool, limit: int | None) -> None:
    """Prints the table's last changes, or all that there are, and those that come, up to `limit`."""
    tables = all_columns(settings.board)
    if table not in tables:
        raise LiveboardError(
            f'expected a table ({", ".join(tables)}), found "{table}", did you mean {nearest(table, tables)}?'
        )
    bootstrap = address.reachable(address.bootstrap(settings))
    client_config = security.librdkafka(settings.kafka, bootstrap)
    columns = tables[table]
    named = [column.name for column in columns]
    lines = json_lines(table, named) if as_json else text_lines(named)
    printed, started, told = 0, time.monotonic(), False
    for kept, changes in follow(client_config, settings.names, [table], None if from_start else _LAST_ROWS):
        if kept is None and not told and time.monotonic() - started > _PATIENCE_S:
            print(f"liveboard: {table} does not exist yet: waiting for the pipeline", file=sys.stderr)
            told = True
        wanted = changes[: limit - printed] if limit else changes
        decoded = [(c.key.decode(), None if c.value is None else decode_row(c.value, columns)) for c in wanted]
        for line in lines(decoded):
            print(line)
        if wanted:
            sys.stdout.flush()
        printed += len(wanted)
        if printed == limit:
            return


def json_lines(table: str, names: Sequence[str]) -> Lines:
    """One object per change, with the whole row by column name, or null for a removed one."""

    def lines(changes: Sequence[Changed]) -> Iterator[str]:
        for key, row in changes:
            named = None if row is None else dict(zip(names, row, strict=True))
            yield orjson.dumps({"table": table, "key": key, "row": named}).decode()

    return lines


def text_lines(names: Sequence[str]) -> Lines:
    """One row per change under one heading, in columns that grow when a value needs it."""
    widths = [len(name) for name in names]
    heading = [list(names)]

    def lines(changes: Sequence[Changed]) -> Iterator[str]:
        rows = [[f"removed: {key}"] if row is None else [cell_text(value) for value in row] for key, row in changes]
        for row in rows:
            widths[:] = map(max, widths, map(len, row)) if len(row) == len(names) else widths
        for row in [*heading, *rows] if rows else []:
            yield "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=False)).rstrip()
        if rows:
            heading.clear()

    return lines


def cell_text(value: object) -> str:
    """A value as one line of a terminal shows it."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    # Data must not be able to steer the terminal.
    return "".join(c if c.isprintable() else "·" for c in str(value))
