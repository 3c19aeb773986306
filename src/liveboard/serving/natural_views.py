"""Windows in a table's own order, from either end; they follow each change at once, but a changed total alone waits."""

from __future__ import annotations

import asyncio
from bisect import bisect_left, bisect_right

from liveboard.serving.query import Query
from liveboard.serving.table import Applied, Row, Table
from liveboard.serving.window import Window

_TOTALS_EVERY_S = 0.1


class NaturalViews:
    """The windows of one table in its own order."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._windows: dict[tuple[bool, int, int], Window] = {}
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._windows)

    def has(self, query: Query, offset: int, size: int) -> bool:
        """Whether the window is open already."""
        return (query.newest, offset, size) in self._windows

    def open(self, query: Query, offset: int, size: int) -> Window:
        """The window, with its content."""
        key = (query.newest, offset, size)
        window = self._windows.get(key)
        if window is None:
            window = self._windows[key] = Window(self._table, query, offset, size)
            self._show(window)
        return window

    def close(self, window: Window) -> None:
        """Nobody looks at it any more."""
        key = (window.query.newest, window.offset, window.size)
        if self._windows.get(key) is window:
            del self._windows[key]
        if not self._windows and self._timer:
            self._timer.cancel()

    def applied(self, applied: Applied) -> None:
        """Shows the changed rows."""
        changed = sorted(applied.before)
        for window in tuple(self._windows.values()):
            if applied.removed:
                self._show(window)
            elif window.query.newest:
                self._patch_newest(window, changed, applied)
            else:
                self._patch(window, changed, applied)
        if any(window.total != len(self._table) for window in self._windows.values()) and not self._timer:
            self._timer = asyncio.get_running_loop().call_later(_TOTALS_EVERY_S, self._show_totals)

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

    def _patch_newest(self, window: Window, changed: list[int], applied: Applied) -> None:
        """Of a window from the end, whose total is therefore always the table's."""
        table, total = self._table, len(self._table)
        came = total - window.total
        if came >= window.size or window.total <= window.offset:
            return self._show(window)
        last = total - 1 - window.offset  # the index in the table of the window's first row
        positions = {table.position_at(last - place) for place in range(came)}
        first = table.position_at(max(0, last - window.size + 1))
        positions.update(changed[bisect_left(changed, first) : bisect_right(changed, table.position_at(last))])
        rows: dict[int, Row] = {}
        for position in positions:
            row = table.row(position)
            if row is not None:
                rows[last - table.index_of(position)] = row
                if applied.before.get(position, row) is None:
                    window.newest = row[1]
        if rows or came:
            window.patch(rows, total, came)
        return None

    def _show(self, window: Window) -> None:
        total = len(self._table)
        if window.query.newest:
            stop = max(0, total - window.offset)
            start = max(0, stop - window.size)
            keys, rows = self._table.window(start, stop - start)
            window.show(keys[::-1], rows[::-1], total)
        else:
            window.show(*self._table.window(window.offset, window.size), total)

    def _show_totals(self) -> None:
        self._timer = None
        for window in tuple(self._windows.values()):
            if window.total != len(self._table):
                window.patch({}, len(self._table))
