"""Answers to SQL over live tables: which rows the SQL process has, and what it has to be told before it is asked.

What a statement sees is of one moment: the changes of all its tables are taken together, in the event loop.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar, cast

from liveboard.config import LimitSettings
from liveboard.contract.frames import Code, FrameError
from liveboard.contract.schema import Column
from liveboard.serving.metrics import Counters
from liveboard.serving.pacing import Pace
from liveboard.serving.sql_process import ProcessDied, SqlProcess
from liveboard.serving.table import Applied, Table
from liveboard.sql.messages import Asked, Forget, Load, Prepare, Prepared, Put, Run, SqlAnswer, StatementLimits

KEPT_S = 30.0
_SENT_AT_ONCE = 2_000
# Rows that are looked up one by one in the event loop; where more have changed, a copy of all is looked at elsewhere.
_LOOKED_UP = 5_000
# Where more than this part of a table has changed, it is sent anew.
_CHANGED_PART = 0.5

_T = TypeVar("_T")

TablesNow = Callable[[], Mapping[str, Table]]
"""The tables that a statement may name, as they are now."""


@dataclass(eq=False)
class Asking:
    """A statement, and what is known of its last answer."""

    sql: str
    tables: TablesNow
    key: tuple[str, ...] = ()
    is_live: bool = False
    is_lasting: bool = False
    """Whether it must depend on the tables alone, as live ones do."""
    id: int = 0
    process: int = 0
    """The one that gave the last answer."""
    prepared: tuple[dict[str, tuple[Column, ...]], Prepared] | None = None
    uses: frozenset[Table] = frozenset()

    @property
    def reads(self) -> tuple[str, ...]:
        """The names of its tables; none before it is first asked."""
        return tuple(self.prepared[1].needed) if self.prepared else ()


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
        self._process = SqlProcess(StatementLimits(limits.sql_seconds, limits.sql_memory_mb, limits.sql_rows))
        self._thread = ThreadPoolExecutor(1, f"sql {kind}")
        self._most = limits.sql_waiting
        self._most_s = limits.sql_seconds
        self._kept_s = kept_s
        self._held: dict[Table, _Held] = {}
        self._forget: list[Forget] = []
        self._process_number = 0
        self._numbers = itertools.count(1)
        self._turn = asyncio.Lock()
        self._pace = Pace(time.monotonic)
        self._waiting = 0
        self._live: set[Asking] = set()
        self._idle: asyncio.TimerHandle | None = None

    @property
    def is_working(self) -> bool:
        """Whether the process is being asked."""
        return self._turn.locked()

    def asking(
        self,
        sql: str,
        tables: TablesNow,
        key: tuple[str, ...] = (),
        *,
        is_live: bool = False,
        is_lasting: bool = False,
    ) -> Asking:
        """A statement to ask, once or again and again."""
        asking = Asking(sql, tables, key, is_live, is_live or is_lasting, next(self._numbers))
        if is_live:
            self._live.add(asking)
        return asking

    def end(self, asking: Asking) -> None:
        """A live statement is not asked any more."""
        self._live.discard(asking)
        self._pace.forget(asking)
        self._forget.append(Forget(live=asking.id))

    async def answer(
        self, asking: Asking, begin: Callable[[], None] = lambda: None
    ) -> tuple[tuple[Column, ...], SqlAnswer]:
        """The columns and the rows, of a live statement those that have changed; a FrameError if there is none.

        `begin` is called when it is its turn: the answer has all that was so by then.
        """
        if not asking.is_live and self._waiting >= self._most:
            raise FrameError(Code.OVERLOADED, f"expected up to {self._most} statements at a time, found one more")
        self._waiting += not asking.is_live
        try:
            answer = await (self._in_pace(asking, begin) if asking.is_live else self._in_turn(asking))
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
            # Nobody may ask for long, and what has changed must not become more than the table.
            if len(held.changed) > max(_LOOKED_UP, len(table) * _CHANGED_PART):
                self.dropped(table)

    def dropped(self, table: Table) -> None:
        """A table is gone, and is not kept for those who might ask."""
        held = self._held.pop(table, None)
        if held is not None:
            self._forget.append(Forget(held.id))

    async def stop(self) -> None:
        """Ends the process."""
        if self._idle:
            self._idle.cancel()
        await asyncio.to_thread(self._process.stop)
        await asyncio.to_thread(self._thread.shutdown, cancel_futures=True)

    async def _in_pace(self, asking: Asking, begin: Callable[[], None]) -> SqlAnswer:
        """The answer to a live statement, when it is its turn; one that fails has used its time too."""
        async with self._pace.turn(asking):
            begin()
            is_first, began = asking.process == 0, time.monotonic()
            seconds = None
            try:
                answer = await self._in_turn(asking)
                seconds = answer.seconds
                return answer
            except FrameError as error:
                if error.code is Code.UNKNOWN_TABLE:
                    # At the start tables are still being read. What took time was to start the process.
                    seconds = 0.0
                raise
            finally:
                if seconds is None:
                    seconds = min(time.monotonic() - began, self._most_s)
                if asking in self._live:
                    self._pace.took(asking, seconds, is_first=is_first)

    async def _in_turn(self, asking: Asking) -> SqlAnswer:
        async with self._turn:
            try:
                return await self._answered(asking)
            except ProcessDied:
                # Once more: of its rows nothing is lost.
                return await self._answered(asking)

    async def _answered(self, asking: Asking) -> SqlAnswer:
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
            answer = cast(SqlAnswer, await self._ask(itertools.chain.from_iterable(sent), run))
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
            told = await self._ask((), Prepare(asking.sql, pairs, asking.is_lasting, list(asking.key)))
            asking.prepared = schemas, cast(Prepared, told)

    def _brought(self, table: Table, needed: frozenset[str]) -> Iterator[Asked]:
        """What makes the process have the table as it is now."""
        held = self._held.get(table)
        if held is not None and needed <= held.needed:
            changed, held.changed = held.changed, {}
            held.asked_at = asyncio.get_running_loop().time()
            if len(changed) > _LOOKED_UP:
                return _put(held.id, _picked(changed, *table.rows()))
            return _put(held.id, [(at, row[1] if (row := table.row(at)) else None) for at in changed])
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

    async def _ask(self, sent: Iterable[Asked], asked: Prepare | Run) -> Prepared | SqlAnswer:
        return await self._run(lambda: self._process.ask(sent, asked))

    async def _run(self, work: Callable[[], _T]) -> _T:
        future = asyncio.get_running_loop().run_in_executor(self._thread, work)
        # Whoever asked may have gone; the process must be left so that somebody else can ask it.
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


def _put(id: int, changes: Iterable[tuple[int, bytes | None]]) -> Iterator[Asked]:
    rest = iter(changes)
    while some := list(itertools.islice(rest, _SENT_AT_ONCE)):
        yield Put(id, some)


def _picked(positions: Iterable[int], first: int, rows: Sequence[bytes | None]) -> Iterator[tuple[int, bytes | None]]:
    for position in positions:
        yield position, rows[position - first] if 0 <= position - first < len(rows) else None


def _pairs(columns: Sequence[Column]) -> list[tuple[str, str]]:
    return [(column.name, column.type) for column in columns]
