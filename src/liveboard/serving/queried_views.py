"""Windows that are sorted, filtered or searched: the mirror answers for them.

It is asked when they are opened, and then at most every REFRESH_S, when a changed row had to do with them. An answer is
as of one moment: the rows shown are those that the mirror had, even where the table has moved on meanwhile. Between two
charts the windows have their turn.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from liveboard.serving.chart_queue import ChartQueue
from liveboard.serving.mirror import Ask, Database, Mirror, WindowPositions
from liveboard.serving.query import Query
from liveboard.serving.table import Applied, Row, Table
from liveboard.serving.window import Window

REFRESH_S = 0.1
# A refresh that takes long is done less often, so that the mirrors leave a part of the machine to others.
_PAUSE_PER_WORK = 2.0

_log = logging.getLogger(__name__)
_T = TypeVar("_T")


class QueriedViews:
    """The sorted, filtered and searched windows of one table, its charts, and the mirror that answers for them."""

    def __init__(
        self,
        table: Table,
        database: Database,
        threads: ThreadPoolExecutor,
        mirror_kept_s: float,
        forget: Callable[[Table], None],
    ) -> None:
        self._table = table
        self._database = database
        self._threads = threads
        self._mirror_kept_s = mirror_kept_s
        self._forget = forget
        self._windows: dict[tuple[Query, int, int], Window] = {}
        self._before: dict[int, Row | None] = {}  # what the mirror has in place of rows that have changed since
        self._ended = False
        self._opened = asyncio.Event()
        self.charts = ChartQueue(self._opened.set)
        self._dirty = asyncio.Event()
        self._task = asyncio.create_task(self._follow(), name=f"mirror of {table.name}")

    def __len__(self) -> int:
        return len(self._windows)

    def has(self, query: Query, offset: int, size: int) -> bool:
        """Whether the window is open already."""
        return (query, offset, size) in self._windows

    def open(self, query: Query, offset: int, size: int) -> Window:
        """The window; its content comes as soon as the mirror has answered."""
        key = (query, offset, size)
        window = self._windows.get(key)
        if window is None:
            window = self._windows[key] = Window(self._table, query, offset, size)
            self._opened.set()
        return window

    def close(self, window: Window) -> None:
        """Nobody looks at it any more."""
        key = (window.query, window.offset, window.size)
        if self._windows.get(key) is window:
            del self._windows[key]

    def applied(self, applied: Applied) -> None:
        """Remembers what the mirror has to be told."""
        for position, row in applied.before.items():
            self._before.setdefault(position, row)
        self._dirty.set()

    def end(self) -> None:
        """Lets the mirror go as soon as it has done what it is doing."""
        self._ended = True
        self._opened.set()

    async def stop(self) -> None:
        """Ends the mirror."""
        self.end()
        await self._task

    async def _follow(self) -> None:
        mirror: Mirror | None = None
        loop = asyncio.get_running_loop()
        try:
            while await self._is_needed():
                started = loop.time()
                try:
                    is_new = mirror is None or mirror.is_worn
                    if is_new or mirror is None:
                        mirror = await self._made(mirror)
                    await self._refresh(mirror, is_new)
                except Exception:
                    _log.exception("mirror failed", extra={"table": self._table.name})
                    self.charts.refuse()
                    await self._drop(mirror)
                    mirror = None
                pause = max(REFRESH_S, (loop.time() - started) * _PAUSE_PER_WORK)
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._opened.wait(), pause)
        finally:
            self._forget(self._table)
            self.charts.refuse()
            await self._drop(mirror)

    async def _is_needed(self) -> bool:
        """Waits for something to do; False when nobody has looked at the table for a while."""
        while not self._opened.is_set() and not (self._dirty.is_set() and self._windows):
            waits = [
                asyncio.create_task(event.wait()) for event in (self._opened, self._dirty)[: 1 + bool(self._windows)]
            ]
            try:
                timeout = None if self._windows else self._mirror_kept_s
                done, _ = await asyncio.wait(waits, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for wait in waits:
                    wait.cancel()
            if not done and not self._windows:
                return False
        return not self._ended

    async def _made(self, worn: Mirror | None) -> Mirror:
        await self._drop(worn)
        self._before.clear()
        first, rows = self._table.rows()

        def make() -> Mirror:
            mirror = Mirror(self._database, self._table.columns)
            mirror.load(first, rows)
            return mirror

        return await self._run(make)

    async def _refresh(self, mirror: Mirror, is_new: bool) -> None:
        self._opened.clear()
        self._dirty.clear()
        changes = [(position, row[1] if (row := self._table.row(position)) else None) for position in self._before]
        self._before.clear()
        windows = list(self._windows.values())
        asks = [Ask(window.query, window.offset, window.size, window.is_ready and not is_new) for window in windows]
        answers = await self._run(lambda: mirror.update(changes, asks))
        for window, answer in zip(windows, answers, strict=True):
            if answer is not None:
                self._show(window, answer)
        await self.charts.compute_next(lambda ask: self._run(partial(mirror.chart, ask)))

    def _show(self, window: Window, answer: WindowPositions) -> None:
        found = [
            row
            for position in answer.positions
            if (row := self._before[position] if position in self._before else self._table.row(position)) is not None
        ]
        window.show([key for key, _ in found], [row for _, row in found], answer.total)

    async def _drop(self, mirror: Mirror | None) -> None:
        if mirror is not None:
            await self._run(mirror.close)

    async def _run(self, work: Callable[[], _T]) -> _T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)
