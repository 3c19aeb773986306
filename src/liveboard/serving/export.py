"""Whole tables as files.

A file is the table, or a view of it, as of the moment of the request, whatever becomes of the table while the file is
sent. It is made in slices, in threads of its own and only as fast as it is read, so viewers do not notice it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import orjson
from starlette.responses import StreamingResponse
from starlette.types import Message, Send

from liveboard.config import LimitSettings
from liveboard.contract.changelog import decode_row
from liveboard.contract.frames import Code, FrameError
from liveboard.contract.schema import Column
from liveboard.serving.encoders import ENCODERS, Encoder, Rows
from liveboard.serving.mirror import Database, Mirror
from liveboard.serving.query import Query
from liveboard.serving.table import Table

STALLED_S = 60.0
# A few milliseconds of work at most, because it holds Python's lock.
_SLICE_ROWS = 500
_THREADS = 2

_log = logging.getLogger(__name__)


class Exports:
    """Makes the files of a server; belongs to its event loop."""

    def __init__(self, most: int = LimitSettings.exports) -> None:
        self.open = 0
        """How many files are being made or sent; each holds the rows of its moment."""
        self._most = most
        self._threads = ThreadPoolExecutor(_THREADS, "export")

    async def response(self, table: Table, query: Query, format: str) -> StreamingResponse:
        """The file as an answer that is made while it is sent; a FrameError for an unknown format."""
        if format not in ENCODERS:
            raise FrameError(Code.BAD_FRAME, f'format: expected {", ".join(ENCODERS)}, found "{format[:100]}"')
        if self.open >= self._most:
            raise FrameError(
                Code.OVERLOADED, f"expected up to {self._most} exports at a time, found one more; try later"
            )
        media_type, encoder = ENCODERS[format]
        first, rows = table.rows()
        loop = asyncio.get_running_loop()
        if query.is_natural:
            slices = _slices(rows)
        else:
            self.open += 1
            try:
                slices = await loop.run_in_executor(self._threads, _found, table.columns, first, rows, query)
            finally:
                self.open -= 1
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
