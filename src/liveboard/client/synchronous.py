"""The client for everyone else: the asynchronous one in a thread of its own."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

from liveboard.client.address import Address, address
from liveboard.client.api import Api
from liveboard.client.asynchronous import dialled
from liveboard.client.connection import Connection
from liveboard.client.notebook import LiveDisplay
from liveboard.client.reading import TableReader
from liveboard.client.subscription import Listener, Shown, SortBy, Subscription, Where
from liveboard.client.table import QueryResult, Table
from liveboard.client.update import Update
from liveboard.config.values import Secret
from liveboard.contract import frames
from liveboard.contract.errors import LiveboardError
from liveboard.contract.frames import TableInfo

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


class Client(TableReader[Table, "SyncSubscription", "Updates"]):
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

    def query(self, sql: str) -> QueryResult:
        """The answer to a SELECT over the tables that the key shows."""
        return QueryResult(*self._api.query(sql))

    def define_view(self, name: str, sql: str, key: Sequence[str] = ()) -> None:
        """Makes a table of others with a SELECT, on all servers of the board, or another one of that name; for admins.

        `key` names the columns that tell its rows apart, where the statement has no GROUP BY.
        """
        self._api.define_view(name, sql, key)

    def remove_view(self, name: str) -> None:
        """Takes such a table away; harmless when there is none."""
        self._api.remove_view(name)

    def live(
        self,
        name: str,
        rows: int = 20,
        sort: SortBy | None = None,
        filter: Where | None = None,
        search: str | None = None,
        newest: bool = False,
    ) -> LiveDisplay:
        """A table that ticks in a notebook, below the cell, until its `stop` is called."""
        display = LiveDisplay()
        display.follow(self.subscribe(name, display.show, (0, rows), sort, filter, search, newest=newest))
        return display

    def swap(self, topics: Mapping[str, str], join: str | None = None) -> None:
        """Asks for other topics, by source, and another kind of the board's first join; all else stays as it is.

        The table orchestrator_status tells what becomes of it.
        """
        self._api.swap(topics, join)

    def close(self) -> None:
        """Ends all subscriptions and the connection; harmless when it has ended."""
        with contextlib.suppress(Closed):
            self._background.run(self._connection.close())
        self._background.stop()

    def _whole(self, asked: frames.Subscribe) -> Table:
        return Table(self._api, asked)

    def _subscribed(self, asked: frames.Subscribe, listener: Listener | None) -> SyncSubscription:
        subscription = self._background.call(lambda: self._connection.subscribe(asked, listener))
        return SyncSubscription(subscription, self._background)

    def _iterated(self, subscription: SyncSubscription) -> Updates:
        return Updates(subscription)


class SyncSubscription(Shown):
    """A listener's view of a window."""

    def __init__(self, subscription: Subscription, background: Background) -> None:
        self._subscription = subscription
        self._background = background

    @property
    def update(self) -> Update | None:
        return self._subscription.update

    @property
    def error(self) -> LiveboardError | None:
        return self._subscription.error

    def set_window(self, offset: int, size: int) -> None:
        """Moves this listener alone; it keeps its rows until those of the new window are there."""
        self._background.call(lambda: self._subscription.set_window(offset, size))

    def next(self) -> Update | None:
        """The newest update, after waiting for one that was not returned yet; None when the subscription has ended."""
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
