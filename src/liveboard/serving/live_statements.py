"""Statements whose answers are kept up to date, each a table like others.

A statement is asked again when one of its tables has changed, at most every EVERY_S. After an answer all statements of
its kind rest for nine times as long as it took. So together they work for no more than a tenth of the time, and with
many statements over large tables each is asked less often.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from liveboard.contract.frames import FrameError
from liveboard.contract.schema import Column
from liveboard.serving.answers import Answers, Tables
from liveboard.serving.table import Applied, Table
from liveboard.sql.messages import Answer

EVERY_S = 0.2

_log = logging.getLogger(__name__)


class LiveStatement:
    """One of them; `table` is its last answer, and None until there is a first one."""

    def __init__(
        self,
        name: str,
        sql: str,
        answers: Answers,
        tables: Tables,
        key: tuple[str, ...],
        shown: Callable[[LiveStatement, Applied | None], None],
        refused: Callable[[LiveStatement, FrameError], None],
    ) -> None:
        self.name = name
        self.sql = sql
        self.table: Table | None = None
        self._answers = answers
        self._tables = tables
        self._asking = answers.asking(sql, tables, key, is_live=True)
        self._shown = shown
        self._refused = refused
        self._due = asyncio.Event()
        self._due.set()
        self._task = asyncio.create_task(self._follow(), name=f"statement {name}")

    def applied(self, table: Table) -> None:
        """Rows of a table have changed."""
        if table in self._asking.uses:
            self._due.set()

    def rebound(self) -> None:
        """Names mean other tables."""
        uses = self._asking.uses
        if not uses or not uses <= set(self._tables().values()):
            self._due.set()

    def end(self) -> None:
        """It is not asked any more."""
        self._task.cancel()
        self._answers.end(self._asking)

    async def _follow(self) -> None:
        while True:
            await self._due.wait()
            self._due.clear()
            try:
                columns, answer = await self._answers.answer(self._asking)
                self._show(columns, answer)
            except FrameError as error:
                self._refused(self, error)
            except Exception:
                _log.exception("statement failed", extra={"statement": self.name})
            await asyncio.sleep(EVERY_S)

    def _show(self, columns: tuple[Column, ...], answer: Answer) -> None:
        if self.table is None or self.table.columns != columns:
            self.table = Table(self.name, None, columns, has_newest=False)
            self.table.become(answer.total, answer.rows)
            self._shown(self, None)
        else:
            applied = self.table.become(answer.total, answer.rows)
            if applied.before:
                self._shown(self, applied)
