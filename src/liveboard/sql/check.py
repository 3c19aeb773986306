"""Whether the views of a board fit its tables, as far as that is known before there is a row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from liveboard.contract.board import Board
from liveboard.contract.frames import FrameError
from liveboard.contract.schema import Column
from liveboard.contract.tables import all_columns
from liveboard.sql.sandbox import Sandbox
from liveboard.sql.statement import StatementReader
from liveboard.sql.worker import key_places

_MEMORY_MB = 256
_SECONDS = 10.0


def view_problems(board: Board) -> Iterator[tuple[str, str]]:
    """The name of each view that is wrong, and why."""
    tables: dict[str, Sequence[Column]] = dict(all_columns(board))
    reader, sandbox = StatementReader(), Sandbox(_MEMORY_MB, 1, _SECONDS)
    try:
        for view in board.views.values():
            try:
                statement = reader.read(view.sql, tables, lasting=True)
                columns = sandbox.columns(statement.sql, {name: tables[name] for name in statement.columns})
                key_places(list(view.key), columns)
            except FrameError as error:
                yield view.name, str(error)
            else:
                # Those after it may be made of it.
                tables[view.name] = columns
    finally:
        reader.close()
        sandbox.close()
