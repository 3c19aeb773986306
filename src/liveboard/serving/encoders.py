"""The files that tables become.

| format  | what                                                                                                      |
|---------|-----------------------------------------------------------------------------------------------------------|
| csv     | RFC 4180 in UTF-8 with a header; null is nothing, an empty text is ""; times and booleans as on the wire  |
| json    | an array of objects; values as on the wire                                                                |
| parquet | typed: timestamps in UTC with microseconds, dates, 32- and 64-bit integers, exact decimals, bytes         |
| arrow   | the same as an Arrow IPC file                                                                             |
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import Any, Protocol

import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from liveboard.arrow import arrow_type
from liveboard.contract.schema import Column

_BATCH_ROWS = 10_000
_ROW_GROUP_ROWS = 100_000

_QUOTED = re.compile(r'[",\r\n]|^$')


Rows = Sequence[Sequence[Any]]


class Encoder(Protocol):
    """Makes a file, part by part."""

    def __init__(self, columns: Sequence[Column]) -> None:
        """For a table with these columns."""

    def rows(self, rows: Rows) -> bytes:
        """The part with these rows; what is kept back comes later."""

    def end(self) -> bytes:
        """The last part."""


class CsvEncoder:
    """RFC 4180."""

    def __init__(self, columns: Sequence[Column]) -> None:
        self._head = _line(_text(column.name) for column in columns)

    def rows(self, rows: Rows) -> bytes:
        """One line each, the header before the first."""
        head, self._head = self._head, ""
        return (head + "".join(_line(map(_text, row)) for row in rows)).encode()

    def end(self) -> bytes:
        """The header, if there was no row."""
        return self._head.encode()


class JsonEncoder:
    """An array of objects, one on a line."""

    def __init__(self, columns: Sequence[Column]) -> None:
        self._names = [column.name for column in columns]
        self._before = b"[\n"

    def rows(self, rows: Rows) -> bytes:
        """The objects, without a comma after the last."""
        if not rows:
            return b""
        before, self._before = self._before, b",\n"
        return before + b",\n".join(orjson.dumps(dict(zip(self._names, row, strict=True))) for row in rows)

    def end(self) -> bytes:
        """The end of the array."""
        return b"[]\n" if self._before == b"[\n" else b"\n]\n"


class _Sink:
    """A file that Arrow writes to and that is emptied as it grows."""

    closed = False

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._written = 0

    def write(self, part: bytes) -> int:
        self._parts.append(bytes(part))
        self._written += len(part)
        return len(part)

    def tell(self) -> int:
        return self._written

    def flush(self) -> None:
        pass

    def close(self) -> None:
        pass

    def take(self) -> bytes:
        """What came since the last time."""
        parts, self._parts = self._parts, []
        return b"".join(parts)


class ArrowEncoder:
    """An Arrow IPC file."""

    rows_at_once = _BATCH_ROWS

    def __init__(self, columns: Sequence[Column]) -> None:
        self._columns = columns
        self._sink = _Sink()
        self._pending: list[pa.RecordBatch] = []
        self._writer = self._open(pa.schema([(column.name, arrow_type(column.kind)) for column in columns]))

    def rows(self, rows: Rows) -> bytes:
        """Batches, when there are enough rows for one."""
        arrays = [arrow_array([row[place] for row in rows], column) for place, column in enumerate(self._columns)]
        self._pending.append(pa.RecordBatch.from_arrays(arrays, [column.name for column in self._columns]))
        if sum(map(len, self._pending)) >= self.rows_at_once:
            self._write()
        return self._sink.take()

    def end(self) -> bytes:
        """The last batch and the footer."""
        if self._pending:
            self._write()
        self._writer.close()
        return self._sink.take()

    def _open(self, schema: pa.Schema) -> Any:
        return pa.ipc.new_file(self._sink, schema)

    def _write(self) -> None:
        pending, self._pending = self._pending, []
        self._writer.write_table(pa.Table.from_batches(pending).combine_chunks())


class ParquetEncoder(ArrowEncoder):
    """A Parquet file."""

    rows_at_once = _ROW_GROUP_ROWS

    def _open(self, schema: pa.Schema) -> Any:
        return pq.ParquetWriter(self._sink, schema)


ENCODERS: dict[str, tuple[str, type[Encoder]]] = {
    "csv": ("text/csv", CsvEncoder),
    "parquet": ("application/vnd.apache.parquet", ParquetEncoder),
    "arrow": ("application/vnd.apache.arrow.file", ArrowEncoder),
    "json": ("application/json", JsonEncoder),
}


def _line(fields: Iterable[str]) -> str:
    return ",".join(fields) + "\r\n"


def _text(value: Any) -> str:
    if type(value) is str:
        return '"' + value.replace('"', '""') + '"' if _QUOTED.search(value) else value
    if value is None:
        return ""
    return repr(value) if type(value) is not bool else "true" if value else "false"


def arrow_array(values: list[Any], column: Column) -> pa.Array:
    """Values of a column, given as the JSON of its rows holds them."""
    return _ARRAYS[column.kind.name](values, arrow_type(column.kind))


def _integers(values: list[Any], type_: pa.DataType) -> pa.Array:
    # Beyond 2^53 they are texts.
    return pa.array([int(value) if type(value) is str else value for value in values], type_)


def _doubles(values: list[Any], type_: pa.DataType) -> pa.Array:
    return pa.array([None if value is None else float(value) for value in values], type_)


def _times(values: list[Any], type_: pa.DataType) -> pa.Array:
    texts = pa.array(values, pa.string())
    # Arrow cannot read years of more than four digits.
    readable = pc.match_substring_regex(texts, "^[0-9]{4}-")
    return pc.if_else(readable, texts, pa.scalar(None, pa.string())).cast(type_)


def _decimals(values: list[Any], type_: pa.DataType) -> pa.Array:
    return pa.array([None if value is None else Decimal(value) for value in values], type_)


def _bytes(values: list[Any], type_: pa.DataType) -> pa.Array:
    return pa.array([None if value is None else base64.b64decode(value) for value in values], type_)


_ARRAYS: dict[str, Callable[[list[Any], pa.DataType], pa.Array]] = {
    "string": pa.array,
    "boolean": pa.array,
    "int": pa.array,
    "bigint": _integers,
    "double": _doubles,
    "decimal": _decimals,
    "date": _times,
    "timestamp": _times,
    "json": pa.array,
    "binary": _bytes,
}
