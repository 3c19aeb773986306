"""Answers to SQL over live tables: which rows the SQL process has, and what it has to be told before it is asked.

What a statement sees is of one moment: the changes of all its tables are taken together, in the event loop.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar, cast

from liveboard.config import LimitSettings
from liveboard.contract.frames import Code, FrameError
from liveboard.contract.schema import Column
from liveboard.serving.metrics import Counters
from liveboard.serving.sql_process import SqlProcess
from liveboard.serving.table import Applied, Table
from liveboard.sql.messages import Answer, Asked, Forget, Limits, Load, Prepare, Prepared, Put, Run

KEPT_S = 30.0
REST_PER_WORK = 9.0
_SENT_AT_ONCE = 2_000

_T = TypeVar("_T")

Tables = Callable[[], Mapping[str, Table]]
"""The tables that a statement may name, as they are now."""


@dataclass(eq=False)
class Asking:
    """A statement, and what is known of its last answer."""

    sql: str
    tables: Tables
    key: tuple[str, ...] = ()
    is_live: bool = False
    id: int = 0
    process: int = 0
    """The one that gave the last answer."""
    prepared: tuple[dict[str, tuple[Column, ...]], Prepared] | None = None
    uses: frozenset[Table] = frozenset()


@dataclass(eq=False)
class _Held:
    id: int
    needed: frozenset[str]
    changed: dict[int, None] = field(default_factory=dict)
    asked_at: float = 0.0


class Answers:
    """Asks one process, one statement after the other; belongs to the event loop."""

    def __init__(self, kind: str, limits: LimitSettings, counters: Counters, kept_s: float = KEPT_S) -> None:
        self._kind = kind
        self._counters = counters
        self._process = SqlProcess(Limits(limits.sql_seconds, limits.sql_memory_mb, limits.sql_rows))
        self._thread = ThreadPoolExecutor(1, f"sql {kind}")
        self._most = limits.sql_waiting
        self._kept_s = kept_s
        self._held: dict[Table, _Held] = {}
        self._forget: list[Forget] = []
        self._process_number = 0
        self._numbers = itertools.count(1)
        self._turn = asyncio.Lock()
        self._pace = asyncio.Lock()
        self._waiting = 0
        self._live: set[Asking] = set()
        self._idle: asyncio.TimerHandle | None = None

    def asking(self, sql: str, tables: Tables, key: tuple[str, ...] = (), *, is_live: bool = False) -> Asking:
        """A statement to ask, once or again and again."""
        asking = Asking(sql, tables, key, is_live, next(self._numbers))
        if is_live:
            self._live.add(asking)
        return asking

    def end(self, asking: Asking) -> None:
        """A live statement is not asked any more."""
        self._live.discard(asking)
        self._forget.append(Forget(live=asking.id))

    async def answer(self, asking: Asking) -> tuple[tuple[Column, ...], Answer]:
        """The columns and the rows, of a live statement those that have changed; a FrameError if there is none."""
        if not asking.is_live and self._waiting >= self._most:
            raise FrameError(Code.OVERLOADED, f"expected up to {self._most} statements at a time, found one more")
        self._waiting += not asking.is_live
        try:
            answer = await (self._in_pace(asking) if asking.is_live else self._in_turn(asking))
        except FrameError as error:
            self._counters.answered(self._kind, error.code)
            raise
        finally:
            self._waiting -= not asking.is_live
            self._rest_later()
        self._counters.answered(self._kind, "ok", answer.seconds)
        return tuple(Column(*pair) for pair in answer.columns), answer

    def applied(self, table: Table, applied: Applied) -> None:
        """Rows of a table have changed."""
        held = self._held.get(table)
        if held is not None:
            held.changed.update(dict.fromkeys(applied.before))

    async def stop(self) -> None:
        """Ends the process."""
        if self._idle:
            self._idle.cancel()
        await asyncio.to_thread(self._process.stop)
        await asyncio.to_thread(self._thread.shutdown, cancel_futures=True)

    async def _in_pace(self, asking: Asking) -> Answer:
        """The answer to a live statement; after it all of them rest for nine times as long."""
        await self._pace.acquire()
        rest_s = 0.0
        is_first = asking.process == 0
        try:
            answer = await self._in_turn(asking)
            rest_s = 0.0 if is_first else answer.seconds * REST_PER_WORK
            return answer
        finally:
            asyncio.get_running_loop().call_later(rest_s, self._pace.release)

    async def _in_turn(self, asking: Asking) -> Answer:
        async with self._turn:
            return await self._answered(asking)

    async def _answered(self, asking: Asking) -> Answer:
        await self._run(self._process.start)
        if self._process.number != self._process_number:
            self._process_number = self._process.number
            self._held.clear()
            self._forget.clear()
        prepared, tables = await self._prepare(asking)
        asking.uses = frozenset(tables.values())
        sent = list(self._tidied())
        for name, table in tables.items():
            sent.append(self._brought(table, frozenset(prepared.needed[name])))
        ids = {name: self._held[table].id for name, table in tables.items()}
        is_known = asking.process == self._process_number
        live = asking.id if asking.is_live else 0
        run = Run(asking.sql, ids, prepared.key, live, is_known)
        before, asking.process = asking.process, 0
        try:
            answer = cast(Answer, await self._ask(itertools.chain.from_iterable(sent), run))
        except FrameError:
            asking.process = before
            raise
        asking.process = self._process_number
        return answer

    async def _prepare(self, asking: Asking) -> tuple[Prepared, dict[str, Table]]:
        """What the statement needs, and the tables that its names mean at this moment."""
        while True:
            tables = asking.tables()
            schemas = {name: table.columns for name, table in tables.items()}
            if asking.prepared is not None and asking.prepared[0] == schemas:
                prepared = asking.prepared[1]
                return prepared, {name: tables[name] for name in prepared.needed}
            asking.uses = frozenset()
            pairs = {name: _pairs(columns) for name, columns in schemas.items()}
            told = await self._ask((), Prepare(asking.sql, pairs, asking.is_live, list(asking.key)))
            asking.prepared = schemas, cast(Prepared, told)

    def _brought(self, table: Table, needed: frozenset[str]) -> Iterator[Asked]:
        """What makes the process have the table as it is now."""
        held = self._held.get(table)
        if held is not None and needed <= held.needed:
            changes = [(position, row[1] if (row := table.row(position)) else None) for position in held.changed]
            held.changed.clear()
            held.asked_at = asyncio.get_running_loop().time()
            return _put(held.id, changes)
        if held is not None:
            needed |= held.needed
        held = self._held[table] = _Held(held.id if held else next(self._numbers), needed)
        held.asked_at = asyncio.get_running_loop().time()
        first, rows = table.rows()
        return _load(held.id, table.columns, needed, first, rows)

    def _tidied(self) -> Iterator[Iterator[Asked]]:
        """Takes away what has not been asked for a while."""
        now = asyncio.get_running_loop().time()
        for table, held in tuple(self._held.items()):
            is_old = held.asked_at < now - self._kept_s
            if is_old and not any(table in asking.uses for asking in self._live):
                del self._held[table]
                self._forget.append(Forget(held.id))
        forgotten, self._forget = self._forget, []
        yield iter(forgotten)

    async def _ask(self, sent: Iterable[Asked], asked: Prepare | Run) -> Prepared | Answer:
        return await self._run(lambda: self._process.ask(sent, asked))

    async def _run(self, work: Callable[[], _T]) -> _T:
        future = asyncio.get_running_loop().run_in_executor(self._thread, work)
        # Who asked may have gone; the process must be left as somebody else can ask it.
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            await asyncio.wait([future])
            future.exception()
            raise

    def _rest_later(self) -> None:
        """Ends the process when nobody has asked it for a while; live statements ask for ever."""
        if self._idle:
            self._idle.cancel()
        self._idle = asyncio.get_running_loop().call_later(self._kept_s, self._rest)

    def _rest(self) -> None:
        if not self._live and not self._turn.locked():
            self._held.clear()
            self._thread.submit(self._process.stop)


def _load(
    id: int, columns: Sequence[Column], needed: frozenset[str], first: int, rows: Sequence[bytes | None]
) -> Iterator[Asked]:
    yield Load(id, _pairs(columns), sorted(needed))
    for at in range(0, len(rows), _SENT_AT_ONCE):
        some = enumerate(rows[at : at + _SENT_AT_ONCE], first + at)
        yield Put(id, [(position, row) for position, row in some if row is not None])


def _put(id: int, changes: Sequence[tuple[int, bytes | None]]) -> Iterator[Asked]:
    for at in range(0, len(changes), _SENT_AT_ONCE):
        yield Put(id, list(changes[at : at + _SENT_AT_ONCE]))


def _pairs(columns: Sequence[Column]) -> list[tuple[str, str]]:
    return [(column.name, column.type) for column in columns]
