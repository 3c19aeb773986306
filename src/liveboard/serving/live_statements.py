"""Statements whose answers are kept up to date, each a table like others.

A statement is asked again when one of its tables has changed and somebody looks at its answer, at its `pace`. Where
nobody does, it is asked when somebody comes.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from liveboard.contract.frames import FrameError
from liveboard.contract.schema import Column
from liveboard.serving.answers import Answers, TablesNow
from liveboard.serving.table import Applied, Table
from liveboard.sql.messages import SqlAnswer

# So long a reader waits for an answer that is newer than the last one.
_NEWER_WITHIN_S = 5.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Audience:
    """Who is told what becomes of a statement."""

    shown: Callable[[LiveStatement, Applied | None], None]
    """There is a table, or rows of it have changed."""
    refused: Callable[[LiveStatement, FrameError], None]
    """It could not be answered."""
    is_there: Callable[[LiveStatement], bool] = lambda statement: True
    """Whether somebody looks."""


class LiveStatement:
    """One of them; `table` is its last answer, and None until there is a first one."""

    def __init__(
        self, name: str, sql: str, answers: Answers, tables: TablesNow, key: tuple[str, ...], audience: Audience
    ) -> None:
        self.name = name
        self.sql = sql
        self.table: Table | None = None
        self._answers = answers
        self._tables = tables
        self._asking = answers.asking(sql, tables, key, is_live=True)
        self._audience = audience
        self._due = asyncio.Event()
        self._due.set()
        self._called = asyncio.Event()
        self._readers: list[asyncio.Future[None]] = []
        self._must = True
        # When the first change came that no answer has yet, and the first one that the answer being made will have.
        self._since: float | None = None
        self._taking_since: float | None = None
        self._task = asyncio.create_task(self._follow(), name=f"statement {name}")

    @property
    def uses(self) -> frozenset[Table]:
        """The tables that it is made of; none before it is first asked."""
        return self._asking.uses

    @property
    def reads(self) -> tuple[str, ...]:
        """Their names."""
        return self._asking.reads

    @property
    def is_due(self) -> bool:
        """Whether something has changed since it was asked last."""
        return self._due.is_set()

    @property
    def behind_s(self) -> float:
        """How old the first change is that its answer lacks."""
        since = self._taking_since or self._since
        return 0.0 if since is None else time.monotonic() - since

    def applied(self, table: Table) -> None:
        """Rows of a table have changed."""
        if table in self._asking.uses:
            self._change()

    def rebound(self) -> None:
        """Names mean other tables."""
        uses = self._asking.uses
        if not uses or not uses <= set(self._tables().values()):
            # Also where nobody looks: the tables before must not be kept for it.
            self._must = True
            self._change()

    def call(self) -> None:
        """Somebody looks at it from now on."""
        self._called.set()

    async def newer(self) -> None:
        """Waits until the answer has all that there is now, if nobody else looks; a while at most."""
        is_current = not self._due.is_set() and self._taking_since is None
        if is_current or self._audience.is_there(self):
            return
        reader: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._readers.append(reader)
        self._must = True
        self._change()
        await asyncio.wait([reader], timeout=_NEWER_WITHIN_S)

    def end(self) -> None:
        """It is not asked any more."""
        self._task.cancel()
        self._answers.end(self._asking)

    def _change(self) -> None:
        if self._since is None:
            self._since = time.monotonic()
        self._due.set()
        if self._must:
            self._called.set()

    async def _follow(self) -> None:
        while True:
            await self._due.wait()
            while not (self._must or self.table is None or self._audience.is_there(self)):
                self._called.clear()
                await self._called.wait()
            readers = await self._answer()
            for reader in readers:
                if not reader.done():
                    reader.set_result(None)

    async def _answer(self) -> list[asyncio.Future[None]]:
        """Asks for the answer; returns those who waited for it."""
        readers: list[asyncio.Future[None]] = []

        def begin() -> None:
            nonlocal readers
            readers, self._readers = self._readers, []
            self._due.clear()
            self._must = False
            self._taking_since, self._since = self._since or time.monotonic(), None

        try:
            columns, answer = await self._answers.answer(self._asking, begin)
            self._show(columns, answer)
        except FrameError as error:
            self._since = self._taking_since
            self._audience.refused(self, error)
        except Exception:
            _log.exception("statement failed", extra={"statement": self.name})
        self._taking_since = None
        return readers

    def _show(self, columns: tuple[Column, ...], answer: SqlAnswer) -> None:
        if self.table is None or self.table.columns != columns:
            self.table = Table(self.name, None, columns, has_newest=False)
            self.table.become(answer.total, answer.rows)
            self._audience.shown(self, None)
        else:
            applied = self.table.become(answer.total, answer.rows)
            if applied.before:
                self._audience.shown(self, applied)
