"""Whole tables as files.

| format  | what                                                                                                      |
|---------|-----------------------------------------------------------------------------------------------------------|
| csv     | RFC 4180 in UTF-8 with a header; null is nothing, an empty text is ""; times and booleans as on the wire  |
| json    | an array of objects; values as on the wire                                                                |
| parquet | typed: timestamps in UTC with microseconds, dates, 32- and 64-bit integers                                |
| arrow   | the same as an Arrow IPC file                                                                             |

A file is the table, or a view of it, as of the moment of the request, whatever becomes of the table while the file is
sent. It is made in slices, in threads of its own and only as fast as it is read, so viewers do not notice it.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from starlette.responses import StreamingResponse
from starlette.types import Message, Send

from liveboard.contract.changelog import decode_row
from liveboard.contract.frames import Code, FrameError
from liveboard.contract.schema import Column
from liveboard.serving.mirror import Database, Mirror
from liveboard.serving.query import Query
from liveboard.serving.table import Table

STALLED_S = 60.0
# A few milliseconds of work at most, because it holds Python's lock.
_SLICE_ROWS = 500
_BATCH_ROWS = 10_000
_ROW_GROUP_ROWS = 100_000
_THREADS = 2
# Each holds the rows of its moment until it has been read.
_MAX_OPEN = 16

_TYPES = {
    "string": pa.string(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
}
_QUOTED = re.compile(r'[",\r\n]|^$')

_log = logging.getLogger(__name__)

Rows = Sequence[Sequence[Any]]


class Exports:
    """Makes the files of a server; belongs to its event loop."""

    def __init__(self) -> None:
        self.open = 0
        """How many files are being sent."""
        self._threads = ThreadPoolExecutor(_THREADS, "export")

    async def response(self, table: Table, query: Query, format: str) -> StreamingResponse:
        """The file as an answer that is made while it is sent; a FrameError for a format that there is not."""
        if format not in _ENCODERS:
            raise FrameError(Code.BAD_FRAME, f'format: expected {", ".join(_ENCODERS)}, found "{format[:100]}"')
        if self.open >= _MAX_OPEN:
            raise FrameError(
                Code.OVERLOADED, f"expected up to {_MAX_OPEN} exports at a time, found one more; try later"
            )
        media_type, encoder = _ENCODERS[format]
        first, rows = table.rows()
        loop = asyncio.get_running_loop()
        if query.is_natural:
            slices = _slices(rows)
        else:
            slices = await loop.run_in_executor(self._threads, _found, table.columns, first, rows, query)
        headers = {
            "Content-Disposition": f'attachment; filename="{table.name}.{format}"',
            "Cache-Control": "no-store",
        }
        parts = self._parts(_file(slices, table.columns, encoder(table.columns)))
        return _FileResponse(parts, headers=headers, media_type=media_type)

    async def stop(self) -> None:
        """Lets the threads go; files that are being made stay unfinished, which their readers notice."""
        await asyncio.to_thread(self._threads.shutdown, cancel_futures=True)

    async def _parts(self, file: Iterator[bytes]) -> AsyncGenerator[bytes]:
        loop = asyncio.get_running_loop()
        self.open += 1
        try:
            while (part := await loop.run_in_executor(self._threads, next, file, None)) is not None:
                if part:
                    yield part
        finally:
            self.open -= 1


class _FileResponse(StreamingResponse):
    """Gives up on a reader that takes nothing for STALLED_S."""

    def __init__(self, parts: AsyncGenerator[bytes], **options: Any) -> None:
        super().__init__(parts, **options)
        self._parts = parts

    async def stream_response(self, send: Send) -> None:
        async def send_in_time(message: Message) -> None:
            async with asyncio.timeout(STALLED_S):
                await send(message)

        try:
            await super().stream_response(send_in_time)
        except TimeoutError:
            _log.warning("reader of an export does not read")
        finally:
            # At once, not when the last traceback that mentions it is gone.
            await self._parts.aclose()


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
        self._writer = self._open(pa.schema([(column.name, _TYPES[column.type]) for column in columns]))

    def rows(self, rows: Rows) -> bytes:
        """Batches, when there are enough rows for one."""
        arrays = [_array([row[place] for row in rows], column) for place, column in enumerate(self._columns)]
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


_ENCODERS: dict[str, tuple[str, type[Encoder]]] = {
    "csv": ("text/csv", CsvEncoder),
    "parquet": ("application/vnd.apache.parquet", ParquetEncoder),
    "arrow": ("application/vnd.apache.arrow.file", ArrowEncoder),
    "json": ("application/json", JsonEncoder),
}


def _slices(rows: Sequence[bytes | None]) -> Iterator[list[bytes]]:
    for at in range(0, len(rows), _SLICE_ROWS):
        yield [row for row in rows[at : at + _SLICE_ROWS] if row is not None]


def _found(columns: Sequence[Column], first: int, rows: list[bytes | None], query: Query) -> Iterator[list[bytes]]:
    """The rows of a query, in its order."""
    # A database of its own, because the viewers' mirror, if there is one, is as of another moment.
    database = Database()
    try:
        mirror = Mirror(database, columns)
        mirror.load(first, rows)
        positions = mirror.positions(query)
    finally:
        database.close()
    return (
        [
            row
            for position in positions.slice(at, _SLICE_ROWS).to_pylist()
            if (row := rows[position - first]) is not None
        ]
        for at in range(0, len(positions), _SLICE_ROWS)
    )


def _file(slices: Iterator[list[bytes]], columns: Sequence[Column], encoder: Encoder) -> Iterator[bytes]:
    for rows in slices:
        yield encoder.rows(_decoded(rows, columns))
    yield encoder.end()


def _decoded(rows: Sequence[bytes], columns: Sequence[Column]) -> Rows:
    try:
        decoded: Rows = orjson.loads(b"[" + b",".join(rows) + b"]")
    except orjson.JSONDecodeError:
        # Says which row it is, and what is wrong with it.
        return [decode_row(row, columns) for row in rows]
    return decoded


def _line(fields: Iterable[str]) -> str:
    return ",".join(fields) + "\r\n"


def _text(value: Any) -> str:
    if type(value) is str:
        return '"' + value.replace('"', '""') + '"' if _QUOTED.search(value) else value
    if value is None:
        return ""
    return repr(value) if type(value) is not bool else "true" if value else "false"


def _array(values: list[Any], column: Column) -> pa.Array:
    match column.type:
        case "bigint":
            # Beyond 2^53 they are texts.
            return pa.array([int(value) if type(value) is str else value for value in values], pa.int64())
        case "double":
            return pa.array([None if value is None else float(value) for value in values], pa.float64())
        case "date" | "timestamp":
            texts = pa.array(values, pa.string())
            # Arrow cannot read years of more than four digits.
            readable = pc.match_substring_regex(texts, "^[0-9]{4}-")
            return pc.if_else(readable, texts, pa.scalar(None, pa.string())).cast(_TYPES[column.type])
        case _:
            return pa.array(values, _TYPES[column.type])
