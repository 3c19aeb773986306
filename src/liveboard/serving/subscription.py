"""What a viewer is shown of one window.

There is nothing but the step of the window that the viewer was sent last. A viewer that does not keep up is therefore
not queued for: when its connection takes the next frame, that frame leads from what it has to the newest content.
"""

from __future__ import annotations

from collections.abc import Callable

from liveboard.contract import frames
from liveboard.serving.limits import Limits, check_window
from liveboard.serving.metrics import Counters
from liveboard.serving.query import compile_query
from liveboard.serving.table import Table
from liveboard.serving.views import Views
from liveboard.serving.window import Window


class Subscription:
    """A window under an id of the viewer's choice; with a name that can come to mean another table.

    `owe` is called when there is something that its viewer has not been sent.
    """

    def __init__(
        self, asked: frames.Subscribe, owe: Callable[[Subscription], None], views: Views, limits: Limits
    ) -> None:
        self.asked = asked
        self._owe = owe
        self._views = views
        self._limits = limits
        self._window: Window | None = None
        self._coming: Window | None = None
        self._step = 0
        self._version = 0
        self._rebound = False
        self.closed: Callable[[], None] = lambda: None
        """Called when nothing more comes of it."""

    @property
    def table(self) -> Table | None:
        """The table that is shown, or will be as soon as its window is there."""
        window = self._coming or self._window
        return window.table if window else None

    def show(self, asked: frames.Subscribe, table: Table) -> None:
        """Moves to a window; the one before is shown until the new one has a content. A FrameError changes nothing."""
        check_window(asked.offset, asked.size, self._limits)
        order = asked.order if table.has_newest else "arrival"
        query = compile_query(table.columns, asked.sort, asked.filter, asked.search, self._limits, order)
        window = self._views.open(table, query, asked.offset, asked.size, self)
        self.asked = asked
        if self._coming not in (None, window):
            self._leave(self._coming)
        self._coming = window
        self.changed()

    def changed(self) -> None:
        """A window has a new content."""
        if self._coming is not None and self._coming.is_ready:
            before, self._window, self._coming = self._window, self._coming, None
            self._step = 0
            if before not in (None, self._window):
                self._leave(before)
            if before is not None and before.table.generation != self._window.table.generation:
                self._rebound = True
        if self._window is not None and self._step < self._window.step:
            self._owe(self)

    def take(self, counters: Counters) -> list[str]:
        """The frames that lead to the newest content; none if the viewer has it."""
        window = self._window
        if window is None or self._step == window.step:
            return []
        texts = []
        if self._rebound:
            texts.append(frames.encode(frames.Rebound(self.asked.id, window.table.generation)))
            self._rebound = False
        event, body = window.since(self._step)
        if self._step and window.step - self._step > 1:
            counters.conflated(window.table.name)
        self._step = window.step
        self._version += 1
        texts.append(frames.framed(event, self.asked.id, self._version, body))
        if window.newest is not None:
            counters.sent(window.table.name, window.newest)
            window.newest = None
        return texts

    def close(self) -> None:
        """Nothing more comes of it."""
        for window in (self._window, self._coming):
            self._leave(window)
        self._window = self._coming = None
        self.closed()

    def _leave(self, window: Window | None) -> None:
        if window is not None:
            self._views.close(window, self)
