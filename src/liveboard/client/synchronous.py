"""The client for everyone else: the asynchronous one in a thread of its own."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import threading
from collections.abc import Callable, Coroutine, Mapping
from datetime import datetime
from types import TracebackType
from typing import Any, Self, TypeVar

from liveboard.client.address import Address, address
from liveboard.client.api import Api
from liveboard.client.asynchronous import control_message, dialled
from liveboard.client.connection import Connection
from liveboard.client.notebook import LiveDisplay
from liveboard.client.subscription import DEFAULT_WINDOW, Listener, SortBy, Subscription, Where, ask
from liveboard.client.table import Table
from liveboard.client.update import Row, Update
from liveboard.config_values import Secret
from liveboard.contract.frames import DEFAULT_SIZE, TableInfo, WireColumn
from liveboard.errors import LiveboardError

_T = TypeVar("_T")


def connect(url: str | None, psk: str | Secret | None, *, ca_file: str | None = None) -> Client:
    """A client of the server at the address; Unauthorized if the key is wrong, Unreachable if there is no server.

    `ca_file` has the authorities that may have signed the server's certificate, if not those of the system.
    """
    return opened(address(url, psk, ca_file))


def opened(where: Address) -> Client:
    """As `connect`."""
    background = Background()
    try:
        connection = background.call(lambda: dialled(where))
        background.run(connection.open())
    except BaseException:
        background.stop()
        raise
    return Client(where, connection, background)


class Closed(LiveboardError):
    """The client was closed."""

    def __init__(self) -> None:
        super().__init__("expected an open client, found a closed one")


class Background:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self._ending = threading.Lock()
        self._is_ended = False
        started = threading.Event()
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._serve(started)), name="liveboard client", daemon=True
        )
        self._thread.start()
        started.wait()

    def run(self, work: Coroutine[Any, Any, _T]) -> _T:
        """What the coroutine returns; not for listeners, which are in the thread themselves."""
        with self._ending:
            if self._is_ended or self._is_inside:
                work.close()
                inside = "expected a call from outside of listeners, found one from a listener, which must not wait"
                raise Closed if self._is_ended else LiveboardError(inside)
            future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except concurrent.futures.CancelledError:
            raise Closed from None
        except BaseException:
            future.cancel()
            raise

    def call(self, work: Callable[[], _T]) -> _T:
        """What the function returns in the thread; at once when called there, so listeners may subscribe and close."""
        if self._is_inside:
            return work()

        async def worked() -> _T:
            return work()

        return self.run(worked())

    def stop(self) -> None:
        """Ends all that runs in the thread, and the thread; harmless when it has ended."""
        with self._ending:
            if not self._is_ended:
                self._is_ended = True
                self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join()

    @property
    def _is_inside(self) -> bool:
        return threading.current_thread() is self._thread

    async def _serve(self, started: threading.Event) -> None:
        self._loop = asyncio.get_running_loop()
        self._stopping = asyncio.Event()
        started.set()
        await self._stopping.wait()


class Client:
    """For any thread. Listeners are called in the client's own thread, one after the other, and should be quick."""

    def __init__(self, where: Address, connection: Connection, background: Background) -> None:
        self._api = Api(where)
        self._url = where.url
        self._connection = connection
        self._background = background

    def __repr__(self) -> str:
        return f'Client("{self._url}", {self._connection.state.value})'

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        self.close()

    def tables(self) -> tuple[TableInfo, ...]:
        """The tables that there are."""
        return self._api.tables()

    def table(
        self,
        name: str,
        *,
        sort: SortBy | None = None,
        filter: Where | None = None,
        search: str | None = None,
        generation: str | None = None,
    ) -> Table:
        """A whole table."""
        return Table(self._api, ask(name, DEFAULT_WINDOW, sort, filter, search, generation))

    def subscribe(
        self,
        name: str,
        listener: Listener | None = None,
        window: tuple[int, int] = DEFAULT_WINDOW,
        sort: SortBy | None = None,
        filter: Where | None = None,
        search: str | None = None,
        generation: str | None = None,
    ) -> SyncSubscription:
        """Shows a window (offset, size) of a table to the listener, now and after every change."""
        asked = ask(name, window, sort, filter, search, generation)
        subscription = self._background.call(lambda: self._connection.subscribe(asked, listener))
        return SyncSubscription(subscription, self._background)

    def updates(
        self,
        name: str,
        window: tuple[int, int] = DEFAULT_WINDOW,
        sort: SortBy | None = None,
        filter: Where | None = None,
        search: str | None = None,
        generation: str | None = None,
    ) -> Updates:
        """The window, now and after every change; who is slow misses what was between, never the newest."""
        return Updates(self.subscribe(name, None, window, sort, filter, search, generation))

    def stream_table_with_rebind(self, name: str, max_rows: int = DEFAULT_SIZE) -> Updates:
        """The first rows of a table; after a swap those of the new generation follow."""
        return self.updates(name, (0, max_rows))

    def live(
        self,
        name: str,
        rows: int = 20,
        sort: SortBy | None = None,
        filter: Where | None = None,
        search: str | None = None,
    ) -> LiveDisplay:
        """A table that ticks in a notebook, below the cell, until its `stop` is called."""
        display = LiveDisplay()
        display.follow(self.subscribe(name, display.show, (0, rows), sort, filter, search))
        return display

    def swap(self, topics: Mapping[str, str], join: str | None = None) -> None:
        """Asks for other topics, by source, and another join; orchestrator_status tells what becomes of it."""
        self._api.control(control_message(topics, join))

    def close(self) -> None:
        """Ends all subscriptions and the connection; harmless when it has ended."""
        with contextlib.suppress(Closed):
            self._background.run(self._connection.close())
        self._background.stop()


class SyncSubscription:
    """A listener's view of a window."""

    def __init__(self, subscription: Subscription, background: Background) -> None:
        self._subscription = subscription
        self._background = background

    @property
    def update(self) -> Update | None:
        """What was shown last; None until there was something."""
        return self._subscription.update

    @property
    def rows(self) -> tuple[Row, ...]:
        """The rows of the window."""
        return self._subscription.rows

    @property
    def columns(self) -> tuple[WireColumn, ...]:
        """The columns of these rows."""
        return self._subscription.columns

    @property
    def stale_since(self) -> datetime | None:
        """Since when the rows may be out of date; None while they are not."""
        return self._subscription.stale_since

    @property
    def error(self) -> LiveboardError | None:
        """Why nothing more will come."""
        return self._subscription.error

    def set_window(self, offset: int, size: int) -> None:
        """Moves this listener alone; it keeps its rows until those of the new window are there."""
        self._background.call(lambda: self._subscription.set_window(offset, size))

    def next(self) -> Update | None:
        """The newest update, once there is one that this did not return yet; None when the subscription has ended."""
        try:
            return self._background.run(self._subscription.next())
        except Closed:
            return None

    def close(self) -> None:
        """Ends it; harmless when it has ended. The table stays as it is."""
        with contextlib.suppress(Closed):
            self._background.call(self._subscription.close)


class Updates:
    """Iterates over the updates of a subscription of its own, until one of the two is closed."""

    def __init__(self, subscription: SyncSubscription) -> None:
        self._subscription = subscription

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Update:
        update = self._subscription.next()
        if update is None:
            raise StopIteration
        return update

    def dispose(self) -> None:
        """Ends the iteration; harmless when it has ended."""
        self._subscription.close()
