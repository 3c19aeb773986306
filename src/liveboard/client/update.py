"""What listeners are shown: a window of a table at one moment, and how frames lead from one to the next."""

from __future__ import annotations

import base64
import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from liveboard.contract.changelog import Value
from liveboard.contract.frames import Delta, Snapshot, WireColumn
from liveboard.contract.types import WireType

Cell = str | int | float | bool | Decimal | date | datetime | bytes | None
Row = tuple[Cell, ...]


@dataclass(frozen=True)
class Update:
    """A window of a table; columns and rows always belong together. Rows are in the order of the columns.

    Timestamps are datetimes in UTC, dates are dates, int64 is always an int, decimals are Decimals, json is a text,
    binary is bytes.
    """

    table: str
    columns: tuple[WireColumn, ...] = ()
    keys: tuple[str, ...] = ()
    rows: tuple[Row, ...] = ()
    total: int = 0
    """How many rows the whole table has, or how many of them the filter and the search leave."""
    offset: int = 0
    generation: str | None = None
    stale_since: datetime | None = None
    """Since when the rows may be out of date, because the server or the table is away."""
    problem: str | None = None
    """Why, in words."""

    def records(self) -> list[dict[str, Cell]]:
        """The rows, each by column name."""
        names = [column.name for column in self.columns]
        return [dict(zip(names, row, strict=True)) for row in self.rows]

    def _repr_html_(self) -> str:
        from liveboard.client.notebook import html

        return html(self)


class FrameGap(Exception):
    """A frame does not continue the one before."""


class WindowCopy:
    """The client's copy of a window on the server: takes the frames of one subscription, decodes every row once."""

    def __init__(self, table: str) -> None:
        self._table = table
        self._version = 0
        self._columns: tuple[WireColumn, ...] = ()
        self._keys: list[str] = []
        self._rows: list[Row] = []
        self._generation: str | None = None
        self._offset = 0

    def take(self, frame: Snapshot | Delta) -> Update:
        """The update after the frame; a FrameGap if a frame before it is missing."""
        if frame.version != self._version + 1 or (self._version == 0 and isinstance(frame, Delta)):
            raise FrameGap(f"expected version {self._version + 1} of {self._table}, found {frame.version}")
        self._version = frame.version
        if isinstance(frame, Snapshot):
            self._columns, self._generation, self._offset = frame.columns, frame.generation, frame.offset
            decode = decoder(frame.columns)
            self._keys, self._rows = list(frame.keys), [decode(row) for row in frame.rows]
        else:
            self._patch(frame)
        return Update(
            self._table,
            self._columns,
            tuple(self._keys),
            tuple(self._rows),
            frame.total,
            self._offset,
            self._generation,
        )

    def _patch(self, delta: Delta) -> None:
        decode = decoder(self._columns)
        # The delta puts rows into these places.
        self._keys[:0] = [""] * delta.insert
        self._rows[:0] = [()] * delta.insert
        for index, key, row in delta.rows:
            if index > len(self._rows):
                raise FrameGap(f"expected a row of {self._table} up to index {len(self._rows)}, found {index}")
            self._keys[index : index + 1] = [key]
            self._rows[index : index + 1] = [decode(row)]
        if delta.drop:
            del self._keys[-delta.drop :], self._rows[-delta.drop :]


def decoder(columns: Sequence[WireColumn]) -> Callable[[tuple[Value, ...]], Row]:
    """Makes Python's values of a row as it is on the wire."""
    special = [(place, read) for place, column in enumerate(columns) if (read := _READ[column.type])]

    def decode(row: tuple[Value, ...]) -> Row:
        cells: list[Any] = list(row)
        for place, read in special:
            if cells[place] is not None:
                # What Python cannot hold, such as the year 10000, stays the text that it is.
                with contextlib.suppress(ValueError):
                    cells[place] = read(cells[place])
        return tuple(cells)

    return decode


# What Python makes of the wire's values; None where they are Python's already.
_READ: dict[WireType, Callable[[Any], Cell] | None] = {
    "string": None,
    "bool": None,
    "int32": None,
    "int64": int,
    "float64": float,
    "decimal": Decimal,
    "date": date.fromisoformat,
    "timestamp": datetime.fromisoformat,
    "json": None,
    "binary": base64.b64decode,
}
