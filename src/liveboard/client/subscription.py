"""Listeners, and the subscriptions on the wire that they share."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Protocol

import msgspec

from liveboard.client.update import Row, Update, WindowCopy
from liveboard.contract import frames
from liveboard.contract.errors import LiveboardError
from liveboard.contract.names import is_table_name

Listener = Callable[[Update], object]
SortBy = Sequence[tuple[str, str]]
Where = Sequence[Sequence[Any]]
DEFAULT_WINDOW = (0, frames.DEFAULT_SIZE)

_log = logging.getLogger(__name__)


def check_name(table: str) -> str:
    """The name, if a table can have it."""
    if not is_table_name(table):
        raise LiveboardError(f'expected a table name of letters, digits and "_" like "final_ui", found "{table[:100]}"')
    return table


def ask(
    table: str,
    window: tuple[int, int],
    sort: SortBy | None,
    filter: Where | None,
    search: str | None,
    generation: str | None,
    newest: bool = False,
) -> frames.Subscribe:
    """What to subscribe to, still without an id."""
    offset, size = _check_window(*window)
    return frames.Subscribe(
        id=0,
        table=check_name(table),
        offset=offset,
        size=size,
        order="newest" if newest else "arrival",
        sort=tuple(map(tuple, sort)) if sort else None,  # type: ignore[arg-type]  # the server checks the directions
        filter=tuple(map(tuple, filter)) if filter else None,
        search=search or None,
        generation=generation,
    )


def ask_sql(sql: str, window: tuple[int, int]) -> frames.Subscribe:
    """The same for the answer to a statement."""
    if not sql.strip():
        raise LiveboardError("sql: expected a SELECT statement, found nothing")
    offset, size = _check_window(*window)
    return frames.Subscribe(id=0, sql=sql, offset=offset, size=size)


class Shared:
    """One subscription on the wire, for all listeners that want the same."""

    def __init__(self, asked: frames.Subscribe) -> None:
        self.asked = asked
        self.id: int | None = None
        """On the wire, as long as the server has been asked and has not refused."""
        self.update: Update | None = None
        self.away: tuple[datetime, str] | None = None
        """Since when and why it is stale."""
        self.error: LiveboardError | None = None
        """Why it is of no use to ask again."""
        self.listeners: dict[Subscription, None] = {}
        self._copy = WindowCopy(asked.table)

    @property
    def is_live(self) -> bool:
        """Whether the rows are those of the server."""
        return self.update is not None and self.away is None

    def asked_as(self, id: int) -> frames.Subscribe:
        """The frame that asks for it, from its first version on."""
        self.id = id
        self._copy = WindowCopy(self.asked.table)
        return msgspec.structs.replace(self.asked, id=id)

    def take(self, frame: frames.Snapshot | frames.Delta) -> None:
        """Shows the frame to all listeners; a FrameGap if one before it is missing."""
        self.update = self._copy.take(frame)
        self.away = None
        for subscription in tuple(self.listeners):
            subscription.show(self.update)

    def mark(self, since: datetime, problem: str, error: LiveboardError | None = None) -> None:
        """Lets the listeners keep what they have, as stale; the time of an earlier mark stays."""
        self.id = None
        self.error = error
        self.away = (self.away[0] if self.away else since, problem)
        if self.update is not None:
            self.update = _marked(self.update, *self.away)
        for subscription in tuple(self.listeners):
            subscription.mark(*self.away, error)


class Attachment(Protocol):
    """What a subscription needs of its connection."""

    def join(self, asked: frames.Subscribe, subscription: Subscription) -> Shared:
        """Adds a listener to what is shared."""

    def leave(self, shared: Shared, subscription: Subscription) -> None:
        """Takes a listener away; with the last one the subscription on the wire ends."""


class Shown(ABC):
    """What a listener has been shown of a window."""

    @property
    @abstractmethod
    def update(self) -> Update | None:
        """What was shown last; None until there was something."""

    @property
    @abstractmethod
    def error(self) -> LiveboardError | None:
        """Why nothing more will come."""

    @property
    def rows(self) -> tuple[Row, ...]:
        """The rows of the window."""
        return self.update.rows if self.update else ()

    @property
    def columns(self) -> tuple[frames.WireColumn, ...]:
        """The columns of these rows."""
        return self.update.columns if self.update else ()

    @property
    def stale_since(self) -> datetime | None:
        """Since when the rows may be out of date; None while they are not."""
        return self.update.stale_since if self.update else None


class Subscription(Shown):
    """A listener's view of a window. Belongs to the event loop of its connection."""

    def __init__(self, connection: Attachment, asked: frames.Subscribe, listener: Listener | None) -> None:
        self.is_closed = False
        self._update: Update | None = None
        self._error: LiveboardError | None = None
        self._connection = connection
        self._asked = asked
        self._listener = listener
        self._news = asyncio.Event()
        self._join()

    @property
    def update(self) -> Update | None:
        return self._update

    @property
    def error(self) -> LiveboardError | None:
        return self._error

    def set_window(self, offset: int, size: int) -> None:
        """Moves this listener alone; it keeps its rows until those of the new window are there."""
        offset, size = _check_window(offset, size)
        if self.is_closed:
            raise LiveboardError("expected an open subscription, found a closed one")
        asked = msgspec.structs.replace(self._asked, offset=offset, size=size)
        if asked != self._asked:
            self._connection.leave(self._shared, self)
            self._asked = asked
            self._join()

    def close(self) -> None:
        """Ends it; harmless when it has ended. The table stays as it is."""
        if not self.is_closed:
            self.is_closed = True
            self._news.set()
            self._connection.leave(self._shared, self)

    async def next(self) -> Update | None:
        """The newest update, after waiting for one that was not returned yet; None when the subscription has ended."""
        await self._news.wait()
        if self.is_closed:
            return None
        if self._error is not None:
            raise self._error
        self._news.clear()
        return self.update

    def show(self, update: Update) -> None:
        """Tells the listener; what it throws is logged and hurts nobody else."""
        if self.is_closed:
            return
        self._update = update
        self._news.set()
        if self._listener is not None:
            try:
                self._listener(update)
            except Exception:
                _log.exception("a listener of %s failed", update.table)

    def mark(self, since: datetime, problem: str, error: LiveboardError | None = None) -> None:
        """Tells the listener that its rows may be out of date."""
        self._error = error
        self.show(_marked(self.update or Update(self._asked.table), since, problem))

    def _join(self) -> None:
        shared = self._shared = self._connection.join(self._asked, self)
        self._error = None
        if shared.update is not None:
            self.show(shared.update)
        elif shared.away is not None:
            self.mark(*shared.away, shared.error)


def _marked(update: Update, since: datetime, problem: str) -> Update:
    return dataclasses.replace(update, stale_since=update.stale_since or since, problem=problem)


def _check_window(offset: int, size: int) -> tuple[int, int]:
    if offset < 0:
        raise LiveboardError(f"window: expected an offset from 0, found {offset}")
    if not 1 <= size <= frames.MAX_SIZE:
        raise LiveboardError(f"window: expected a size from 1 to {frames.MAX_SIZE}, found {size}")
    return offset, size
