"""What both clients offer for reading, with its parameters written once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

from liveboard.client.subscription import DEFAULT_WINDOW, Listener, SortBy, Where, ask, ask_sql
from liveboard.contract import frames

TableT = TypeVar("TableT")
SubscriptionT = TypeVar("SubscriptionT")
UpdatesT = TypeVar("UpdatesT")


class TableReader(ABC, Generic[TableT, SubscriptionT, UpdatesT]):
    """Whole tables and live windows; each client has tables, subscriptions and updates of its own kind."""

    def table(
        self,
        name: str,
        *,
        sort: SortBy | None = None,
        filter: Where | None = None,
        search: str | None = None,
        generation: str | None = None,
    ) -> TableT:
        """A whole table."""
        return self._whole(ask(name, DEFAULT_WINDOW, sort, filter, search, generation))

    def subscribe(
        self,
        name: str,
        listener: Listener | None = None,
        window: tuple[int, int] = DEFAULT_WINDOW,
        sort: SortBy | None = None,
        filter: Where | None = None,
        search: str | None = None,
        generation: str | None = None,
        newest: bool = False,
    ) -> SubscriptionT:
        """Shows a window (offset, size) of a table to the listener, now and after every change.

        `newest` counts from the table's end: its newest row is the first.
        """
        return self._subscribed(ask(name, window, sort, filter, search, generation, newest), listener)

    def updates(
        self,
        name: str,
        window: tuple[int, int] = DEFAULT_WINDOW,
        sort: SortBy | None = None,
        filter: Where | None = None,
        search: str | None = None,
        generation: str | None = None,
        newest: bool = False,
    ) -> UpdatesT:
        """The window, now and after every change. Who is slow skips older changes and always gets the newest."""
        return self._iterated(self.subscribe(name, None, window, sort, filter, search, generation, newest))

    def live_query(
        self, sql: str, listener: Listener | None = None, window: tuple[int, int] = DEFAULT_WINDOW
    ) -> SubscriptionT:
        """Shows the answer to a SELECT over the tables to the listener, now and whenever it has changed."""
        return self._subscribed(ask_sql(sql, window), listener)

    def query_updates(self, sql: str, window: tuple[int, int] = DEFAULT_WINDOW) -> UpdatesT:
        """The answer to a SELECT over the tables, now and whenever it has changed."""
        return self._iterated(self.live_query(sql, None, window))

    def stream_table_with_rebind(self, name: str, max_rows: int = frames.DEFAULT_SIZE) -> UpdatesT:
        """The first rows of a table; after a swap those of the new generation follow."""
        return self.updates(name, (0, max_rows))

    @abstractmethod
    def _whole(self, asked: frames.Subscribe) -> TableT:
        """The table that is asked for, all of it."""

    @abstractmethod
    def _subscribed(self, asked: frames.Subscribe, listener: Listener | None) -> SubscriptionT:
        """A subscription to the window that is asked for."""

    @abstractmethod
    def _iterated(self, subscription: SubscriptionT) -> UpdatesT:
        """Iterates over what the subscription is shown."""
