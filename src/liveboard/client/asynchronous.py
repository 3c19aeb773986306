"""The client for asyncio."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Self

import websockets

from liveboard.client.address import Address, address
from liveboard.client.api import Api
from liveboard.client.connection import Connection
from liveboard.client.subscription import DEFAULT_WINDOW, Listener, SortBy, Subscription, Where, ask
from liveboard.client.table import Table
from liveboard.client.update import Cell, Row, Update
from liveboard.config_values import Secret
from liveboard.contract.frames import DEFAULT_SIZE, TableInfo

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow as pa

_CONNECT_S = 10.0
_GOODBYE_S = 1.0

# At its debug level the library logs every frame, the one with the key among them.
_log = logging.getLogger(f"{__name__}.websockets")
_log.setLevel(logging.INFO)


async def connect_async(url: str | None, psk: str | Secret | None, *, ca_file: str | None = None) -> AsyncClient:
    """A client of the server at the address; Unauthorized if the key is wrong, Unreachable if there is no server.

    `ca_file` has the authorities that may have signed the server's certificate, if not those of the system.
    """
    where = address(url, psk, ca_file)
    connection = dialled(where)
    await connection.open()
    return AsyncClient(where, connection)


def dialled(where: Address) -> Connection:
    """The connection to a server, not opened yet."""

    def dial() -> websockets.connect:
        # Frames are as large as their windows, and the server's beats show that it is there.
        return websockets.connect(
            where.websocket,
            ssl=where.tls,
            logger=_log,
            compression=None,
            max_size=None,
            ping_interval=None,
            open_timeout=_CONNECT_S,
            close_timeout=_GOODBYE_S,
        )

    return Connection(where, dial)


def control_message(topics: Mapping[str, str], join: str | None) -> dict[str, str]:
    """What asks for other topics and another join."""
    message = {f"{source}Topic": topic for source, topic in topics.items()}
    return message if join is None else {**message, "joinType": join}


class AsyncClient:
    """Belongs to the event loop that it was connected in; listeners are called there and must not wait."""

    def __init__(self, where: Address, connection: Connection) -> None:
        self._api = Api(where)
        self._url = where.url
        self._connection = connection

    def __repr__(self) -> str:
        return f'AsyncClient("{self._url}", {self._connection.state.value})'

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None
    ) -> None:
        await self.close()

    async def tables(self) -> tuple[TableInfo, ...]:
        """The tables that there are."""
        return await asyncio.to_thread(self._api.tables)

    def table(
        self,
        name: str,
        *,
        sort: SortBy | None = None,
        filter: Where | None = None,
        search: str | None = None,
        generation: str | None = None,
    ) -> AsyncTable:
        """A whole table."""
        return AsyncTable(Table(self._api, ask(name, DEFAULT_WINDOW, sort, filter, search, generation)))

    def subscribe(
        self,
        name: str,
        listener: Listener | None = None,
        window: tuple[int, int] = DEFAULT_WINDOW,
        sort: SortBy | None = None,
        filter: Where | None = None,
        search: str | None = None,
        generation: str | None = None,
    ) -> Subscription:
        """Shows a window (offset, size) of a table to the listener, now and after every change."""
        return self._connection.subscribe(ask(name, window, sort, filter, search, generation), listener)

    def updates(
        self,
        name: str,
        window: tuple[int, int] = DEFAULT_WINDOW,
        sort: SortBy | None = None,
        filter: Where | None = None,
        search: str | None = None,
        generation: str | None = None,
    ) -> AsyncUpdates:
        """The window, now and after every change; who is slow misses what was between, never the newest."""
        return AsyncUpdates(self.subscribe(name, None, window, sort, filter, search, generation))

    def stream_table_with_rebind(self, name: str, max_rows: int = DEFAULT_SIZE) -> AsyncUpdates:
        """The first rows of a table; after a swap those of the new generation follow."""
        return self.updates(name, (0, max_rows))

    async def swap(self, topics: Mapping[str, str], join: str | None = None) -> None:
        """Asks for other topics, by source, and another join; orchestrator_status tells what becomes of it."""
        await asyncio.to_thread(self._api.control, control_message(topics, join))

    async def close(self) -> None:
        """Ends all subscriptions and the connection; harmless when it has ended."""
        await self._connection.close()


class AsyncTable:
    """A table, or what a sort, a filter and a search make of it. Every call fetches it as it is at that moment."""

    def __init__(self, table: Table) -> None:
        self.name = table.name
        self._table = table

    async def to_arrow(self) -> pa.Table:
        """Timestamps are in UTC with microseconds."""
        return await asyncio.to_thread(self._table.to_arrow)

    async def to_pandas(self) -> pandas.DataFrame:
        """Integers and booleans are of the types that can be null, so that none becomes a float."""
        return await asyncio.to_thread(self._table.to_pandas)

    async def to_polars(self) -> polars.DataFrame:
        """As a polars frame."""
        return await asyncio.to_thread(self._table.to_polars)

    async def rows(self) -> list[Row]:
        """The rows, each in the order of the columns."""
        return await asyncio.to_thread(self._table.rows)

    async def records(self) -> list[dict[str, Cell]]:
        """The rows, each by column name."""
        return await asyncio.to_thread(self._table.records)


class AsyncUpdates:
    """Iterates over the updates of a subscription of its own, until one of the two is closed."""

    def __init__(self, subscription: Subscription) -> None:
        self._subscription = subscription

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Update:
        update = await self._subscription.next()
        if update is None:
            raise StopAsyncIteration
        return update

    def dispose(self) -> None:
        """Ends the iteration; harmless when it has ended."""
        self._subscription.close()
