"""The windows that are open, each shared by all its viewers.

What nobody looks at is gone at once, the mirror of a table after MIRROR_KEPT_S.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from liveboard.config import LimitSettings
from liveboard.contract.frames import Code, FrameError
from liveboard.serving.chart import Chart, ChartAsk
from liveboard.serving.mirror import Database
from liveboard.serving.natural_views import NaturalViews
from liveboard.serving.queried_views import QueriedViews
from liveboard.serving.query import Query
from liveboard.serving.table import Applied, Table
from liveboard.serving.window import Window, WindowListener

MIRROR_KEPT_S = 30.0
_MIRROR_THREADS = 2


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
        self.opened: Callable[[Table], None] = lambda table: None
        """Is told whose windows are opened."""

    @property
    def windows(self) -> int:
        """How many windows are open."""
        return sum(map(len, self._natural.values())) + sum(map(len, self._queried.values()))

    @property
    def mirrors(self) -> int:
        """How many tables have a mirror."""
        return len(self._queried)

    def has(self, table: Table) -> bool:
        """Whether a window of the table is open."""
        return bool(self._natural.get(table) or self._queried.get(table))

    def open(self, table: Table, query: Query, offset: int, size: int, listener: WindowListener) -> Window:
        """The window, shared with all who have the same open; `listener` hears of its changes until it is closed."""
        views = self._natural.get(table) if query.is_natural else self._queried.get(table)
        if views is None or not views.has(query, offset, size):
            self._check_room(query)
        if query.is_natural:
            window = self._natural.setdefault(table, NaturalViews(table)).open(query, offset, size)
        else:
            window = self._queried_views(table).open(query, offset, size)
        window.listeners.add(listener)
        self.opened(table)
        return window

    async def chart(self, table: Table, ask: ChartAsk) -> Chart:
        """What there is to draw, over the rows as they are now."""
        return await self._queried_views(table).charts.chart(ask)

    def close(self, window: Window, listener: WindowListener) -> None:
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
