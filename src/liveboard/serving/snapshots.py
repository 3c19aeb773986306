"""Tables on this machine's disk, so that a server that starts again reads only what has changed since.

A snapshot is a file with the rows of one changelog and the offset from which to read on. It is written while the table
changes: slice by slice in the event loop, each at a moment of its own. Rows that changed meanwhile are in the changelog
behind the offset, so whoever reads on from there has them all as they are. A file is there whole or not at all, and one
that does not fit is ignored: it only saves time.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import os
import re
import struct
import time
import zlib
from array import array
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec
import psutil

from liveboard.serving.changelogs import Changelog
from liveboard.serving.table import Table

FORMAT = 1
# With fewer records to read, a file would save nothing that anybody notices.
WORTH_RECORDS = 100_000
EVERY_S = 300.0
# Kafka forgets what was removed a day after it has tidied up: a snapshot that is older could bring such rows back.
OLDEST_S = 12 * 3600.0
_RENEWED_S = 3 * 3600.0
_SLICE = 2_000
_WHOLE = ".rows"
_BLOCK = struct.Struct("<III")  # rows, bytes, checksum

_log = logging.getLogger(__name__)


class SnapshotOrigin(msgspec.Struct, frozen=True):
    """What a snapshot is of."""

    topic: str
    topic_id: str
    """Another one when the topic was made anew."""
    offset: int
    """Where to read on."""
    written_s: float
    format: int = FORMAT


class Misfit(Exception):
    """Why a file is of no use."""


class Snapshots:
    """The files of one server. Without a folder there are none, and nothing happens."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._looked_s = time.monotonic()
        self._written: dict[str, tuple[int, float]] = {}
        self._is_writing = False
        self._task: asyncio.Task[None] | None = None

    @property
    def is_on(self) -> bool:
        """Whether there is a place for them."""
        return self._folder is not None

    def has(self, topic: str) -> bool:
        """Whether there is a file of that changelog, which may not fit."""
        return self.is_on and self._file(topic).exists()

    def load(self, changelog: Changelog, topic_id: str, begin: int, end: int) -> None:
        """Fills the changelog from its file, if there is one that fits the topic as it is now."""
        if not self.has(changelog.topic):
            return
        file = self._file(changelog.topic)
        begun_s = time.monotonic()
        try:
            with file.open("rb") as source:
                origin = _origin(source)
                _check(origin, changelog.topic, topic_id, begin, end, time.time())
                rows = dict(itertools.chain.from_iterable(_rows(source)))
        except (OSError, Misfit) as error:
            _log.warning("snapshot ignored", extra={"topic": changelog.topic, "reason": str(error)})
            return
        changelog.begin_with(rows, origin.offset)
        self._written[changelog.topic] = (origin.offset, origin.written_s)
        took = f"{time.monotonic() - begun_s:.2f}"
        _log.info("snapshot loaded", extra={"topic": changelog.topic, "rows": len(rows), "seconds": took})

    def due(self, changelogs: Iterable[Changelog]) -> Changelog | None:
        """A changelog whose table is worth writing now: whoever asks has it written."""
        if self._folder is None or self._is_writing or time.monotonic() - self._looked_s < EVERY_S:
            return None
        for changelog in changelogs:
            offset, written_s = self._written.get(changelog.topic, (0, 0.0))
            unwritten = changelog.position - offset
            is_old = unwritten and offset and time.time() - written_s > _RENEWED_S
            if changelog.is_loaded and changelog.generation and (unwritten >= WORTH_RECORDS or is_old):
                # Noted also if it fails: it is tried again when there is more to write.
                self._written[changelog.topic] = (changelog.position, time.time())
                self._is_writing = True
                return changelog
        self._looked_s = time.monotonic()
        return None

    def write(self, table: Table | None, topic: str, topic_id: str, offset: int) -> None:
        """Begins to write a table that has everything before the offset; in the event loop, one at a time."""
        # A table that lets old rows go cannot be told from one that never had them.
        if table is None or table.evicted or not topic_id:
            self._is_writing = False
            return
        origin = SnapshotOrigin(topic, topic_id, offset, time.time())
        self._task = asyncio.create_task(self._write(table, origin), name=f"snapshot of {topic}")

    def keep_only(self, topics: Collection[str], ours: re.Pattern[str]) -> None:
        """Removes the files of changelogs that are not followed any more, and what will never be finished."""
        if self._folder is not None and self._folder.is_dir():
            for file in self._folder.iterdir():
                is_left = file.stem not in topics if file.suffix == _WHOLE else self._is_abandoned(file)
                if ours.match(file.stem) and is_left:
                    file.unlink(missing_ok=True)

    def _is_abandoned(self, file: Path) -> bool:
        """Whether it is what a server had written of a file when it was killed."""
        process = file.suffix[1:]
        if process == str(os.getpid()):
            # In a container, all that have run there had this one.
            return not self._is_writing
        return process.isdigit() and not psutil.pid_exists(int(process))

    async def stop(self) -> None:
        """Leaves what is half written."""
        if self._task:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _write(self, table: Table, origin: SnapshotOrigin) -> None:
        file = self._file(origin.topic)
        unfinished = file.with_suffix(f".{os.getpid()}")
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            with unfinished.open("wb") as target:
                header = msgspec.json.encode(origin)
                _write_body(target, 0, header)
                at, count = 0, 0
                while at < table.end:
                    keys, rows, at = table.some_from(at, _SLICE)
                    count += len(keys)
                    await asyncio.to_thread(_write_block, target, keys, rows)
                target.write(_BLOCK.pack(0, 0, count % 2**32))
                await asyncio.to_thread(_to_disk, target)
            unfinished.rename(file)
            _log.info("snapshot written", extra={"topic": origin.topic, "rows": count, "offset": origin.offset})
        except OSError as error:
            _log.warning("snapshot not written", extra={"topic": origin.topic, "reason": str(error)})
        finally:
            unfinished.unlink(missing_ok=True)
            self._is_writing = False

    def _file(self, topic: str) -> Path:
        assert self._folder is not None
        return self._folder / f"{topic}{_WHOLE}"


def _write_block(target: BinaryIO, keys: list[bytes], rows: list[bytes]) -> None:
    if keys:
        lengths = array("I", map(len, itertools.chain(keys, rows))).tobytes()
        body = b"".join((lengths, *keys, *rows))
        _write_body(target, len(keys), body)


def _write_body(target: BinaryIO, count: int, body: bytes) -> None:
    target.write(_BLOCK.pack(count, len(body), zlib.crc32(body, count)))
    target.write(body)


def _to_disk(target: BinaryIO) -> None:
    target.flush()
    os.fsync(target.fileno())


def _block(source: BinaryIO) -> tuple[int, int, bytes]:
    """How many rows, the checksum, and the bytes."""
    head = source.read(_BLOCK.size)
    if len(head) < _BLOCK.size:
        raise Misfit("it ends too early")
    count, size, checksum = _BLOCK.unpack(head)
    body = source.read(size)
    if size and (len(body) < size or zlib.crc32(body, count) != checksum):
        raise Misfit("it is damaged")
    return count, checksum, body


def _origin(source: BinaryIO) -> SnapshotOrigin:
    try:
        return msgspec.json.decode(_block(source)[2], type=SnapshotOrigin)
    except msgspec.MsgspecError as error:
        raise Misfit(f"its beginning cannot be read: {error}") from None


def _check(origin: SnapshotOrigin, topic: str, topic_id: str, begin: int, end: int, now_s: float) -> None:
    if origin.format != FORMAT:
        raise Misfit(f"expected format {FORMAT}, found {origin.format}")
    if (origin.topic, origin.topic_id) != (topic, topic_id):
        raise Misfit("the topic was made anew since")
    if not begin <= origin.offset <= end:
        raise Misfit(f"expected an offset from {begin} to {end}, found {origin.offset}")
    if not 0 <= now_s - origin.written_s <= OLDEST_S:
        raise Misfit("it is too old, or from the future")


def _rows(source: BinaryIO) -> Iterator[Iterator[tuple[bytes, bytes]]]:
    """The keys and values, block by block: other threads can run in between."""
    found = 0
    while True:
        count, checksum, body = _block(source)
        if not count:
            if body or checksum != found % 2**32:
                raise Misfit("rows are missing")
            return
        found += count
        lengths = array("I", body[: 8 * count])
        ends = itertools.accumulate(lengths, initial=8 * count)
        parts = [body[start:stop] for start, stop in itertools.pairwise(ends)]
        yield zip(parts[:count], parts[count:], strict=True)
