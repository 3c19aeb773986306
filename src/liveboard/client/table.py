"""A whole table, as of one moment."""

from __future__ import annotations

import io
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from liveboard.arrow import arrow_type
from liveboard.client.api import Api
from liveboard.client.update import Cell, Row, decoder
from liveboard.contract import frames
from liveboard.contract.changelog import Value
from liveboard.contract.errors import LiveboardError
from liveboard.contract.types import WireType, wire_column_type

if TYPE_CHECKING:
    import pandas
    import polars

# What becomes of Arrow's types; None is what pandas makes of it by itself.
_PANDAS_TYPES = {
    "string": None,
    "bool": "boolean",
    "int32": "Int32",
    "int64": "Int64",
    "double": None,
    "decimal128": None,
    "date32[day]": None,
    "timestamp[us, tz=UTC]": None,
    "binary": None,
}


class Frames(ABC):
    """What can be had as a frame of any kind."""

    @abstractmethod
    def to_arrow(self) -> pa.Table:
        """Timestamps are in UTC with microseconds."""

    def to_pandas(self) -> pandas.DataFrame:
        """Integers and booleans are of the types that can be null, so that none becomes a float. Decimals stay so."""
        try:
            import pandas
        except ImportError:
            raise _missing("pandas") from None

        def dtype(arrow: pa.DataType) -> object:
            name = _PANDAS_TYPES[str(arrow).partition("(")[0]]
            return pandas.api.types.pandas_dtype(name) if name else None

        frame: pandas.DataFrame = self.to_arrow().to_pandas(types_mapper=dtype)
        return frame

    def to_polars(self) -> polars.DataFrame:
        """As a polars frame."""
        try:
            import polars
        except ImportError:
            raise _missing("polars") from None
        frame = polars.from_arrow(self.to_arrow())
        assert isinstance(frame, polars.DataFrame)
        return frame

    def rows(self) -> list[Row]:
        """The rows, each in the order of the columns."""
        columns = [column.to_pylist() for column in self.to_arrow().columns]
        return list(zip(*columns, strict=True))

    def records(self) -> list[dict[str, Cell]]:
        """The rows, each by column name."""
        records: list[dict[str, Cell]] = self.to_arrow().to_pylist()
        return records


class Table(Frames):
    """A table, or what a sort, a filter and a search make of it. Every call fetches it as it is at that moment."""

    def __init__(self, api: Api, asked: frames.Subscribe) -> None:
        self.name = asked.table
        self._api = api
        self._asked = asked

    def __repr__(self) -> str:
        return f'Table("{self.name}")'

    def to_arrow(self) -> pa.Table:
        file = io.BytesIO()
        self._api.export(self._asked, "arrow", file)
        return pa.ipc.open_file(pa.py_buffer(file.getbuffer())).read_all()


class QueryResult(Frames):
    """The answer to a SELECT, as of one moment."""

    def __init__(self, columns: tuple[frames.WireColumn, ...], rows: Sequence[tuple[Value, ...]]) -> None:
        self.columns = columns
        decode = decoder(columns)
        self._rows = [decode(row) for row in rows]

    def __repr__(self) -> str:
        return f"QueryResult({len(self._rows)} rows of {', '.join(column.name for column in self.columns)})"

    def __len__(self) -> int:
        return len(self._rows)

    def rows(self) -> list[Row]:
        """The rows, each in the order of the columns."""
        return list(self._rows)

    def to_arrow(self) -> pa.Table:
        arrays = [
            # What Python could not hold, such as the year 10000, stayed a text.
            pa.array([None if is_time and isinstance(row[place], str) else row[place] for row in self._rows], type_)
            for place, column in enumerate(self.columns)
            for is_time, type_ in [(column.type in ("date", "timestamp"), _arrow_type(column.type))]
        ]
        # Decimals that are all null.
        known = [array.cast(pa.decimal128(38, 0)) if pa.types.is_null(array.type) else array for array in arrays]
        return pa.Table.from_arrays(known, [column.name for column in self.columns])


def _arrow_type(wire: WireType) -> pa.DataType | None:
    """What the values become in Arrow; None for decimals, which get as many digits as they need."""
    kind = wire_column_type(wire)
    return None if kind.name == "decimal" else arrow_type(kind)


def _missing(package: str) -> LiveboardError:
    return LiveboardError(
        f"to_{package}: expected the package {package}, found none; install it: pip install {package}"
    )
