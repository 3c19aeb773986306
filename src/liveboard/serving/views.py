"""The windows that are open, each shared by all its viewers, and how they follow their tables.

A window in the table's own order follows every change at once; a change of nothing but the total waits a moment. All
others are asked from the mirror: when they are opened, and then at most every REFRESH_S, when a changed row had to do
with them. An answer is as of one moment: the rows shown are those that the mirror had, even where the table has moved
on meanwhile. What nobody looks at is gone at once, the mirror after MIRROR_KEPT_S. A chart is computed anew at most
every CHART_KEPT_S, however many ask for it, and one that takes long less often; between two charts the windows have
their turn.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from bisect import bisect_left
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from liveboard.config import LimitSettings
from liveboard.contract.frames import Code, FrameError
from liveboard.serving.chart import Chart, ChartAsk
from liveboard.serving.mirror import Answer, Ask, Database, Mirror
from liveboard.serving.query import Query
from liveboard.serving.table import Applied, Row, Table
from liveboard.serving.window import Listener, Window

REFRESH_S = 0.1
CHART_KEPT_S = 1.0
MIRROR_KEPT_S = 30.0
# A refresh that takes long is done less often, so that the mirrors leave a part of the machine to others.
_PAUSE_PER_WORK = 2.0
_CHART_KEPT_PER_WORK = 10.0
_MIRROR_THREADS = 2
_MAX_CHARTS = 50

_log = logging.getLogger(__name__)
_T = TypeVar("_T")


class Views:
    """All open windows of a server; belongs to its event loop."""

    def __init__(
        self,
        max_queried: int = LimitSettings.queries,
        max_windows: int = LimitSettings.windows,
        mirror_kept_s: float = MIRROR_KEPT_S,
    ) -> None:
        self._database = Database()
        self._threads = ThreadPoolExecutor(_MIRROR_THREADS, "mirror")
        self._max_queried = max_queried
        self._max_windows = max_windows
        self._mirror_kept_s = mirror_kept_s
        self._natural: dict[Table, NaturalViews] = {}
        self._queried: dict[Table, QueriedViews] = {}

    @property
    def windows(self) -> int:
        """How many windows are open."""
        return sum(map(len, self._natural.values())) + sum(map(len, self._queried.values()))

    @property
    def mirrors(self) -> int:
        """How many tables have a mirror."""
        return len(self._queried)

    def open(self, table: Table, query: Query, offset: int, size: int, listener: Listener) -> Window:
        """The window, shared with all who have the same open; `listener` hears of its changes until it is closed."""
        views = self._natural.get(table) if query.is_natural else self._queried.get(table)
        if views is None or not views.has(query, offset, size):
            self._check_room(query)
        if query.is_natural:
            window = self._natural.setdefault(table, NaturalViews(table)).open(query, offset, size)
        else:
            window = self._queried_views(table).open(query, offset, size)
        window.listeners.add(listener)
        return window

    async def chart(self, table: Table, ask: ChartAsk) -> Chart:
        """What there is to draw, over the rows as they are now."""
        return await self._queried_views(table).chart(ask)

    def close(self, window: Window, listener: Listener) -> None:
        """The listener hears nothing any more; harmless when it did not listen."""
        window.listeners.discard(listener)
        if window.listeners:
            return
        if window.query.is_natural:
            if window.table in self._natural:
                self._natural[window.table].close(window)
                if not len(self._natural[window.table]):
                    del self._natural[window.table]
        elif window.table in self._queried:
            self._queried[window.table].close(window)

    def applied(self, table: Table, applied: Applied) -> None:
        """The table has changed."""
        if not applied.before:
            return
        if table in self._natural:
            self._natural[table].applied(applied)
        if table in self._queried:
            self._queried[table].applied(applied)

    def drop(self, table: Table) -> None:
        """The table is gone; its windows are closed by those who have them open."""
        if table in self._queried:
            self._queried[table].end()

    async def stop(self) -> None:
        """Ends all that runs."""
        await asyncio.gather(*(views.stop() for views in tuple(self._queried.values())))
        self._threads.shutdown(wait=True, cancel_futures=True)
        self._database.close()

    def _check_room(self, query: Query) -> None:
        expected = ""
        if self.windows >= self._max_windows:
            expected = f"expected up to {self._max_windows} different windows at a time"
        elif not query.is_natural and sum(map(len, self._queried.values())) >= self._max_queried:
            expected = f"expected up to {self._max_queried} sorted or filtered windows at a time"
        if expected:
            raise FrameError(Code.OVERLOADED, f"{expected}, found one more")

    def _queried_views(self, table: Table) -> QueriedViews:
        if table not in self._queried:
            views = QueriedViews(table, self._database, self._threads, self._mirror_kept_s, self._forget)
            self._queried[table] = views
        return self._queried[table]

    def _forget(self, table: Table) -> None:
        self._queried.pop(table, None)


class NaturalViews:
    """The windows of one table in its own order."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._windows: dict[tuple[int, int], Window] = {}
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._windows)

    def has(self, _: Query, offset: int, size: int) -> bool:
        """Whether the window is open already."""
        return (offset, size) in self._windows

    def open(self, query: Query, offset: int, size: int) -> Window:
        """The window, with its content."""
        window = self._windows.get((offset, size))
        if window is None:
            window = self._windows[offset, size] = Window(self._table, query, offset, size)
            self._show(window)
        return window

    def close(self, window: Window) -> None:
        """Nobody looks at it any more."""
        if self._windows.get((window.offset, window.size)) is window:
            del self._windows[window.offset, window.size]
        if not self._windows and self._timer:
            self._timer.cancel()

    def applied(self, applied: Applied) -> None:
        """Shows the changed rows."""
        changed = sorted(applied.before)
        for window in tuple(self._windows.values()):
            if applied.removed:
                self._show(window)
            else:
                self._patch(window, changed, applied)
        if any(window.total != len(self._table) for window in self._windows.values()) and not self._timer:
            self._timer = asyncio.get_running_loop().call_later(REFRESH_S, self._show_totals)

    def _patch(self, window: Window, changed: list[int], applied: Applied) -> None:
        table = self._table
        first, last = table.position_at(window.offset), table.position_at(window.offset + window.size)
        rows: dict[int, Row] = {}
        for at in range(bisect_left(changed, first), bisect_left(changed, last)):
            row = table.row(changed[at])
            if row is not None:
                rows[table.index_of(changed[at]) - window.offset] = row
                if applied.before[changed[at]] is None:
                    window.newest = row[1]
        if rows:
            window.patch(rows, len(table))

    def _show(self, window: Window) -> None:
        window.show(*self._table.window(window.offset, window.size), len(self._table))

    def _show_totals(self) -> None:
        self._timer = None
        for window in tuple(self._windows.values()):
            if window.total != len(self._table):
                window.patch({}, len(self._table))


class QueriedViews:
    """The sorted, filtered and searched windows of one table, and its mirror."""

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
        self._charts: dict[ChartAsk, asyncio.Future[Chart]] = {}  # those still to be computed, the oldest first
        self._kept_charts: dict[ChartAsk, Chart] = {}
        self._before: dict[int, Row | None] = {}  # what the mirror has in place of rows that have changed since
        self._ended = False
        self._opened = asyncio.Event()
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

    async def chart(self, ask: ChartAsk) -> Chart:
        """What the mirror finds, or has just found for another."""
        if ask in self._kept_charts:
            return self._kept_charts[ask]
        if ask not in self._charts and len(self._charts) >= _MAX_CHARTS:
            raise FrameError(Code.OVERLOADED, f"expected up to {_MAX_CHARTS} charts at a time, found one more")
        if ask not in self._charts:
            self._charts[ask] = asyncio.get_running_loop().create_future()
            self._opened.set()
        return await asyncio.shield(self._charts[ask])

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
                    self._refuse_charts()
                    await self._drop(mirror)
                    mirror = None
                pause = max(REFRESH_S, (loop.time() - started) * _PAUSE_PER_WORK)
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._opened.wait(), pause)
        finally:
            self._forget(self._table)
            self._refuse_charts()
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
        if self._charts:
            await self._draw(mirror, next(iter(self._charts)))

    async def _draw(self, mirror: Mirror, ask: ChartAsk) -> None:
        loop = asyncio.get_running_loop()
        started = loop.time()
        chart = self._kept_charts[ask] = await self._run(partial(mirror.chart, ask))
        kept_s = max(CHART_KEPT_S, (loop.time() - started) * _CHART_KEPT_PER_WORK)
        loop.call_later(kept_s, self._kept_charts.pop, ask)
        self._charts.pop(ask).set_result(chart)
        if self._charts:
            self._opened.set()

    def _show(self, window: Window, answer: Answer) -> None:
        found = [
            row
            for position in answer.positions
            if (row := self._before[position] if position in self._before else self._table.row(position)) is not None
        ]
        window.show([key for key, _ in found], [row for _, row in found], answer.total)

    def _refuse_charts(self) -> None:
        for asked in self._charts.values():
            asked.set_exception(FrameError(Code.OVERLOADED, "expected a chart, found no answer; try again later"))
        self._charts.clear()

    async def _drop(self, mirror: Mirror | None) -> None:
        if mirror is not None:
            await self._run(mirror.close)

    async def _run(self, work: Callable[[], _T]) -> _T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)
