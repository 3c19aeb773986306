"""The client for asyncio."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self

import websockets

from liveboard.client.address import Address, address
from liveboard.client.api import Api
from liveboard.client.connection import Connection
from liveboard.client.reading import TableReader
from liveboard.client.subscription import Listener, Subscription
from liveboard.client.table import QueryResult, Table
from liveboard.client.update import Cell, Row, Update
from liveboard.config.values import Secret
from liveboard.contract import frames
from liveboard.contract.frames import TableInfo

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
    """As `connect`, for asyncio."""
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


class AsyncClient(TableReader["AsyncTable", Subscription, "AsyncUpdates"]):
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

    async def query(self, sql: str) -> QueryResult:
        """The answer to a SELECT over the tables that the key shows."""
        return QueryResult(*await asyncio.to_thread(self._api.query, sql))

    async def define_view(self, name: str, sql: str, key: Sequence[str] = ()) -> None:
        """Makes a table of others with a SELECT, on all servers of the board, or another one of that name; for admins.

        `key` names the columns that tell its rows apart, where the statement has no GROUP BY.
        """
        await asyncio.to_thread(self._api.define_view, name, sql, key)

    async def remove_view(self, name: str) -> None:
        """Takes such a table away; harmless when there is none."""
        await asyncio.to_thread(self._api.remove_view, name)

    async def swap(self, topics: Mapping[str, str], join: str | None = None) -> None:
        """Asks for other topics, by source, and another kind of the board's first join; all else stays as it is.

        The table orchestrator_status tells what becomes of it.
        """
        await asyncio.to_thread(self._api.swap, topics, join)

    async def close(self) -> None:
        """Ends all subscriptions and the connection; harmless when it has ended."""
        await self._connection.close()

    def _whole(self, asked: frames.Subscribe) -> AsyncTable:
        return AsyncTable(Table(self._api, asked))

    def _subscribed(self, asked: frames.Subscribe, listener: Listener | None) -> Subscription:
        return self._connection.subscribe(asked, listener)

    def _iterated(self, subscription: Subscription) -> AsyncUpdates:
        return AsyncUpdates(subscription)


class AsyncTable:
    """A `Table` whose methods are awaited."""

    def __init__(self, table: Table) -> None:
        self.name = table.name
        self._table = table

    async def to_arrow(self) -> pa.Table:
        """As `Table.to_arrow`."""
        return await asyncio.to_thread(self._table.to_arrow)

    async def to_pandas(self) -> pandas.DataFrame:
        """As `Table.to_pandas`."""
        return await asyncio.to_thread(self._table.to_pandas)

    async def to_polars(self) -> polars.DataFrame:
        """As `Table.to_polars`."""
        return await asyncio.to_thread(self._table.to_polars)

    async def rows(self) -> list[Row]:
        """As `Table.rows`."""
        return await asyncio.to_thread(self._table.rows)

    async def records(self) -> list[dict[str, Cell]]:
        """As `Table.records`."""
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
