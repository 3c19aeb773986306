"""A table's rows once more, typed and in columns, so that DuckDB can sort, filter, search and count them.

Dates and timestamps are kept as their texts, whose order is the order of time. For searches, all values of a row are
kept once more as one text, in lower case. SQL is made from column numbers only; everything that a viewer writes is a
parameter. The database can reach no file and no network.

The positions of a query's rows, in its order, are kept for as long as no change moves one of them, the least recently
asked for going first when a mirror keeps more than 64 MiB of them (8 bytes each: eight orders of a million rows). The
first rows of a wide sort are found without them, which is much cheaper than to sort all.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal

import duckdb
import orjson
import pyarrow as pa

from liveboard.contract.schema import Column
from liveboard.contract.types import TYPES
from liveboard.serving.chart import Chart, ChartAsk
from liveboard.serving.query import SEPARATOR, Query, searched

# As what values come into DuckDB, by the type that it has for them.
_ARROW_TYPES: dict[str, Callable[..., pa.DataType]] = {
    "VARCHAR": pa.string,
    "BOOLEAN": pa.bool_,
    "BIGINT": pa.int64,
    "DOUBLE": pa.float64,
    "DECIMAL": pa.decimal128,
}
# Decoding holds Python's lock, so the slices are small enough for other threads not to notice.
_DECODED_AT_ONCE = 1_000
_INSERTED_AT_ONCE = 100_000
# DuckDB keeps the room of deleted rows; after this many for each row a mirror is better made anew.
_WORN_BY_DELETIONS = 4
_WORN_AT_LEAST = 200_000
_KEPT_BYTES = 64 * 2**20
# Up to this row DuckDB keeps the first rows in a heap; behind it, it sorts them all.
_FIRST_ROWS = 5_000
# So few rows are sorted as fast as they are found.
_FEW_ROWS = 50_000
# With more changed rows at a time, it is not looked up whether they kept their places.
_COMPARED_AT_ONCE = 2_000

_log = logging.getLogger(__name__)
_numbers = itertools.count(1)


_CLOSED: dict[str, str | bool | int | float | list[str]] = {
    # Otherwise rows that do not fit into memory would be written to a folder `.tmp` here, which SQL could read, too.
    "temp_directory": "",
    "allow_community_extensions": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    # SQL finds what is registered, and no variable of Python.
    "python_enable_replacements": "false",
}


class Database:
    """The DuckDB that all mirrors of a server live in."""

    def __init__(self) -> None:
        self._root = duckdb.connect(":memory:", config=_CLOSED)
        self._root.execute("ATTACH ':memory:' AS mirrors (COMPRESS)")
        # After the databases are there: what is named before stays allowed, even a file `:memory:`.
        self._root.execute("SET enable_external_access = false")
        self._root.execute("SET lock_configuration = true")

    def cursor(self) -> duckdb.DuckDBPyConnection:
        """A connection of one's own; a mirror's is used by one thread at a time."""
        return self._root.cursor()

    def close(self) -> None:
        """Ends everything that runs."""
        self._root.close()


@dataclass(frozen=True)
class Ask:
    """A window of a query; `known` is whether its last answer can be kept while no change touches it."""

    query: Query
    offset: int
    size: int
    known: bool


@dataclass(frozen=True)
class WindowPositions:
    """The positions of the rows in the window, and how many rows the query has."""

    positions: list[int]
    total: int


class Mirror:
    """The rows of one table as of the last `update`. Not for the event loop: every method takes its time."""

    def __init__(self, database: Database, columns: Sequence[Column]) -> None:
        self._columns = tuple(columns)
        self._cursor = database.cursor()
        self._name = f"mirrors.t{next(_numbers)}"
        names = ", ".join(f"c{number} {column.kind.duckdb}" for number, column in enumerate(columns))
        self._cursor.execute(f"CREATE TABLE {self._name} (pos BIGINT, {names}, folded VARCHAR)")
        folded = f"lower(concat_ws('{SEPARATOR}', {', '.join(searched(columns))}))"
        self._fresh = f"SELECT *, {folded} AS folded FROM fresh"
        self._totals: dict[Query, int] = {}
        self._orders: dict[Query, pa.Array] = {}  # by the time of their last use
        self._inserted = 0
        self._deleted = 0

    @property
    def is_worn(self) -> bool:
        """Whether a new mirror would be much smaller than this one."""
        return self._deleted > max(_WORN_AT_LEAST, _WORN_BY_DELETIONS * (self._inserted - self._deleted))

    def load(self, first: int, rows: Sequence[bytes | None]) -> None:
        """Takes all rows of the table, with the position of the first."""
        for start in range(0, len(rows), _INSERTED_AT_ONCE):
            some = rows[start : start + _INSERTED_AT_ONCE]
            self._insert([(first + start + at, row) for at, row in enumerate(some) if row is not None])

    def update(self, changes: Sequence[tuple[int, bytes | None]], asks: Sequence[Ask]) -> list[WindowPositions | None]:
        """Takes the new rows by position, then answers; None where no change concerns a known answer."""
        self._cursor.execute("BEGIN")
        try:
            stale = self._replace(changes, {ask.query for ask in asks}) if changes else set()
            self._cursor.execute("COMMIT")
        except BaseException:
            self._cursor.execute("ROLLBACK")
            raise
        return [None if ask.known and ask.query not in stale else self._answer(ask) for ask in asks]

    def positions(self, query: Query) -> pa.ChunkedArray:
        """Of all rows of a query, in its order."""
        where = f" WHERE {query.where}" if query.where else ""
        sql = f"SELECT pos FROM {self._name}{where} ORDER BY {query.order_by}"
        return self._cursor.sql(sql, params=query.parameters).to_arrow_table().column(0)

    def chart(self, ask: ChartAsk) -> Chart:
        """What there is to draw."""
        return ask.answer(lambda sql, parameters: self._cursor.execute(sql, parameters).fetchall(), self._name)

    def close(self) -> None:
        """Frees the memory."""
        self._cursor.execute(f"DROP TABLE {self._name}")
        self._cursor.close()

    def _replace(self, changes: Sequence[tuple[int, bytes | None]], queries: set[Query]) -> set[Query]:
        """Puts the changes in; returns the queries that had or have one of these rows. Of others nothing is kept."""
        gone = pa.table({"pos": pa.array([position for position, _ in changes], pa.int64())})
        self._cursor.register("gone", gone)
        had = "pos IN (SELECT pos FROM gone)"
        compared = queries & self._orders.keys() if len(changes) <= _COMPARED_AT_ONCE else set()
        places = {query: self._places(self._name, query, had) for query in compared}
        stale = {
            query for query in queries if (places[query] if query in places else self._any(self._name, query, had))
        }
        self._deleted += self._number(f"DELETE FROM {self._name} WHERE {had}")
        self._cursor.unregister("gone")
        fresh = self._insert([(position, row) for position, row in changes if row is not None])
        if fresh is not None:
            self._cursor.register("fresh", fresh)
            stale |= {query for query in queries - stale if self._any(f"({self._fresh})", query, "TRUE")}
            stayed = {query for query in compared if places[query] == self._places(f"({self._fresh})", query, "TRUE")}
            self._cursor.unregister("fresh")
        else:
            stayed = {query for query in compared if not places[query]}
        # Totals and orders stay right until a change touches their query or moves its rows.
        right = (queries - stale) | stayed
        self._totals = {query: total for query, total in self._totals.items() if query in right}
        self._orders = {query: order for query, order in self._orders.items() if query in right}
        return stale

    def _insert(self, rows: Sequence[tuple[int, bytes]]) -> pa.Table | None:
        if not rows:
            return None
        fresh = self._arrow(rows)
        self._cursor.register("fresh", fresh)
        self._cursor.execute(f"INSERT INTO {self._name} {self._fresh}")
        self._cursor.unregister("fresh")
        self._inserted += len(rows)
        return fresh

    def _answer(self, ask: Ask) -> WindowPositions:
        query, stop = ask.query, ask.offset + ask.size
        order = self._orders.get(query)
        # All rows of a filter alone are found in the time in which they are counted.
        if order is None and query.order:
            total = self._totals.get(query)
            if total is None:
                total = self._totals[query] = self._count(query)
            if ask.offset >= total:
                return WindowPositions([], total)
            if stop <= _FIRST_ROWS and total > _FEW_ROWS:
                return WindowPositions(self._first(query, stop)[ask.offset :], total)
        if order is None:
            order = pa.concat_arrays(self.positions(query).chunks or [pa.array([], pa.int64())])
        self._keep(query, order)
        return WindowPositions(order[ask.offset : stop].to_pylist(), len(order))

    def _first(self, query: Query, count: int) -> list[int]:
        where = f" WHERE {query.where}" if query.where else ""
        sql = f"SELECT pos FROM {self._name}{where} ORDER BY {query.order_by} LIMIT {count}"
        return [position for (position,) in self._cursor.execute(sql, query.parameters).fetchall()]

    def _keep(self, query: Query, order: pa.Array) -> None:
        self._orders.pop(query, None)
        self._orders[query] = order
        while sum(kept.nbytes for kept in self._orders.values()) > _KEPT_BYTES:
            del self._orders[next(iter(self._orders))]

    def _places(self, name: str, query: Query, having: str) -> list[tuple[object, ...]]:
        """Which rows the query has, and what its order is made of."""
        where = f"{having} AND {query.where}" if query.where else having
        names = ", ".join(["pos", *query.sorted_by])
        return self._cursor.execute(
            f"SELECT {names} FROM {name} WHERE {where} ORDER BY pos", query.parameters
        ).fetchall()

    def _count(self, query: Query) -> int:
        where = f" WHERE {query.where}" if query.where else ""
        return self._number(f"SELECT count(*) FROM {self._name}{where}", query.parameters)

    def _any(self, name: str, query: Query, having: str) -> bool:
        where = f"{having} AND {query.where}" if query.where else having
        return self._number(f"SELECT count(*) FROM (FROM {name} WHERE {where} LIMIT 1)", query.parameters) > 0

    def _number(self, sql: str, parameters: Sequence[object] = ()) -> int:
        # All of the result, even if it is one row: the connection takes nothing else before its end.
        return int(self._cursor.execute(sql, parameters).fetchall()[0][0])

    def _arrow(self, rows: Sequence[tuple[int, bytes]]) -> pa.Table:
        names = ["pos", *(f"c{number}" for number in range(len(self._columns)))]
        batches = [
            pa.RecordBatch.from_arrays(list(self._arrays(rows[at : at + _DECODED_AT_ONCE])), names=names)
            for at in range(0, len(rows), _DECODED_AT_ONCE)
        ]
        return pa.Table.from_batches(batches)

    def _arrays(self, rows: Sequence[tuple[int, bytes]]) -> Iterator[pa.Array]:
        yield pa.array([position for position, _ in rows], pa.int64())
        columns = zip(*self._decoded([row for _, row in rows]), strict=True)
        for column, values in zip(self._columns, columns, strict=True):
            arrow = _ARROW_TYPES[TYPES[column.kind.name].duckdb](*column.kind.parameters)
            if column.kind.parameters:
                values = tuple(None if value is None else Decimal(value) for value in values)
            # Beyond 2^53 they are texts.
            elif arrow == pa.int64() and any(type(value) is str for value in values):
                values = tuple(int(value) if type(value) is str else value for value in values)
            yield pa.array(values, arrow)

    def _decoded(self, rows: Sequence[bytes]) -> list[list[object]]:
        try:
            return list(orjson.loads(b"[" + b",".join(rows) + b"]"))
        except orjson.JSONDecodeError:
            return [self._decoded_alone(row) for row in rows]

    def _decoded_alone(self, row: bytes) -> list[object]:
        try:
            return list(orjson.loads(row))
        except orjson.JSONDecodeError as error:
            _log.error("row that cannot be sorted or found", extra={"reason": str(error)})
            return [None] * len(self._columns)
