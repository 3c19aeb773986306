"""Tables in a notebook."""

from __future__ import annotations

import html as escaping
import importlib
import threading
from typing import TYPE_CHECKING, Protocol

from liveboard.contract.errors import LiveboardError
from liveboard.contract.types import WireType, wire_column_type

if TYPE_CHECKING:
    from liveboard.client.update import Cell, Update

_SHOWN_EVERY_S = 0.2


class _Closable(Protocol):
    def close(self) -> None:
        """Ends it."""


class LiveDisplay:
    """A place below a cell that shows the newest update; at most five times a second, so that no browser drowns."""

    def __init__(self) -> None:
        try:
            shell = importlib.import_module("IPython").get_ipython()
        except ImportError:
            shell = None
        if shell is None:
            raise LiveboardError("live: expected a notebook, found a Python without one")
        self.update: Update | None = None
        """What came last."""
        self._news = threading.Event()
        self._stopped = threading.Event()

    def show(self, update: Update) -> None:
        """Shows an update soon."""
        self.update = update
        self._news.set()

    def follow(self, subscription: _Closable) -> None:
        """Begins to show; the subscription ends when the display is stopped."""
        self._subscription = subscription
        self._handle = importlib.import_module("IPython.display").display(_Html("<i>…</i>"), display_id=True)
        self._thread = threading.Thread(target=self._paint, name="liveboard display", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Leaves the last rows standing; harmless when it has stopped."""
        self._subscription.close()
        self._stopped.set()
        self._news.set()
        self._thread.join()

    def _paint(self) -> None:
        is_last = False
        while not is_last:
            self._news.wait()
            self._news.clear()
            is_last = self._stopped.is_set()
            if self.update is not None:
                self._handle.update(_Html(html(self.update)))
            self._stopped.wait(_SHOWN_EVERY_S)


class _Html:
    """What a notebook shows as it is."""

    def __init__(self, text: str) -> None:
        self._text = text

    def _repr_html_(self) -> str:
        return self._text


def html(update: Update) -> str:
    """An update as a table, with its place in the whole and, where it is stale, since when."""
    head = "".join(f"<th>{escaping.escape(column.name)}</th>" for column in update.columns)
    body = "".join(
        "<tr>" + "".join(_cell(cell, column.type) for cell, column in zip(row, update.columns, strict=True)) + "</tr>"
        for row in update.rows
    )
    last = update.offset + len(update.rows) - 1
    place = f"rows {update.offset:,}-{last:,} of {update.total:,}" if update.rows else f"{update.total:,} rows"
    caption = f"{escaping.escape(update.table)}: {place}"
    if update.stale_since is not None:
        since = f"{update.stale_since.astimezone():%H:%M:%S}"
        caption += f' <b title="{escaping.escape(update.problem or "")}">stale since {since}</b>'
    return f"<table><caption>{caption}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(cell: Cell, type_: WireType) -> str:
    text = "" if cell is None else escaping.escape(str(cell))
    return f'<td style="text-align:{wire_column_type(type_).align}">{text}</td>'
