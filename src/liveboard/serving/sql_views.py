"""The views of the configuration, and the statements that viewers have live.

A view is a table of the catalogue, evaluated over all tables whoever looks at it. A viewer's statement is a table for
those alone who asked the same with keys that show the same, over what these keys show. Each kind has a process of its
own, so that viewers' statements disturb no view.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Protocol

from liveboard.config import LimitSettings
from liveboard.contract.board import View
from liveboard.contract.frames import Code, FrameError
from liveboard.contract.schema import Column
from liveboard.serving.answers import Answers
from liveboard.serving.auth import Grant
from liveboard.serving.catalogue import Catalogue
from liveboard.serving.live_statements import LiveStatement
from liveboard.serving.metrics import Counters
from liveboard.serving.table import Applied, Table
from liveboard.sql.messages import Answer

QUERY = "query"
"""What the table of a viewer's statement is called."""

_log = logging.getLogger(__name__)


class Asker(Protocol):
    """Who has asked for a statement."""

    def answered(self, table: Table) -> None:
        """There is a table, or another one."""

    def refused(self, error: FrameError) -> None:
        """There is none, and nothing more comes."""


class SqlViews:
    """All of them; belongs to the event loop."""

    def __init__(self, views: Sequence[View], catalogue: Catalogue, limits: LimitSettings, counters: Counters) -> None:
        self._views = views
        self._catalogue = catalogue
        self._limits = limits
        self._of_views = Answers("view", limits, counters)
        self._of_viewers = Answers(QUERY, limits, counters)
        self._board: list[LiveStatement] = []
        self._asked: dict[tuple[str, frozenset[str] | None], LiveStatement] = {}
        self._askers: dict[LiveStatement, set[Asker]] = {}
        self._why: dict[str, str] = {}

    def start(self) -> None:
        """Begins with the views."""
        for place, view in enumerate(self._views):
            later = frozenset(other.name for other in self._views[place:])

            def tables(later: frozenset[str] = later) -> Mapping[str, Table]:
                return {table.name: table for table in self._catalogue.named() if table.name not in later}

            self._board.append(
                LiveStatement(view.name, view.sql, self._of_views, tables, view.key, self._show, self._complain)
            )

    async def stop(self) -> None:
        """Ends all of them."""
        for statement in (*self._board, *self._asked.values()):
            statement.end()
        await self._of_views.stop()
        await self._of_viewers.stop()

    async def ask(self, grant: Grant, sql: str) -> tuple[tuple[Column, ...], Answer]:
        """One answer, over the tables that the key shows; a FrameError if there is none."""
        return await self._of_viewers.answer(self._of_viewers.asking(sql, lambda: self._shown_to(grant)))

    def open(self, grant: Grant, sql: str, asker: Asker) -> LiveStatement:
        """A statement whose answer is kept up to date, shared with all who have asked the same."""
        key = (sql, grant.tables)
        statement = self._asked.get(key)
        if statement is None:
            if len(self._asked) >= self._limits.sql_live:
                expected = f"expected up to {self._limits.sql_live} different live statements at a time"
                raise FrameError(Code.OVERLOADED, f"{expected}, found one more")
            statement = self._asked[key] = LiveStatement(
                QUERY, sql, self._of_viewers, lambda: self._shown_to(grant), (), self._tell, self._refuse
            )
            self._askers[statement] = set()
        self._askers[statement].add(asker)
        if statement.table is not None:
            asker.answered(statement.table)
        return statement

    def close(self, statement: LiveStatement, asker: Asker) -> None:
        """The asker hears nothing any more; with the last one the statement ends."""
        askers = self._askers.get(statement, set())
        askers.discard(asker)
        if not askers and self._askers.pop(statement, None) is not None:
            self._asked = {key: other for key, other in self._asked.items() if other is not statement}
            statement.end()

    def applied(self, table: Table, applied: Applied) -> None:
        """Rows have changed."""
        if applied.before:
            for answers in (self._of_views, self._of_viewers):
                answers.applied(table, applied)
            for statement in (*self._board, *self._asked.values()):
                statement.applied(table)

    def rebound(self) -> None:
        """Names mean other tables."""
        for statement in (*self._board, *self._asked.values()):
            statement.rebound()

    def _shown_to(self, grant: Grant) -> Mapping[str, Table]:
        return {table.name: table for table in self._catalogue.named() if grant.shows(table.name)}

    def _show(self, statement: LiveStatement, applied: Applied | None) -> None:
        assert statement.table is not None
        self._why.pop(statement.name, None)
        if applied is None:
            self._catalogue.loaded(statement.table)
        else:
            self._catalogue.watcher.applied(statement.table, applied)

    def _complain(self, statement: LiveStatement, error: FrameError) -> None:
        """A view that cannot be evaluated stays as it was."""
        is_early = error.code is Code.UNKNOWN_TABLE and not self._catalogue.is_ready
        if not is_early and self._why.get(statement.name) != str(error):
            self._why[statement.name] = str(error)
            _log.warning("view not evaluated", extra={"view": statement.name, "reason": str(error)})

    def _tell(self, statement: LiveStatement, applied: Applied | None) -> None:
        assert statement.table is not None
        if applied is not None:
            self._catalogue.watcher.applied(statement.table, applied)
            return
        for asker in tuple(self._askers.get(statement, ())):
            asker.answered(statement.table)

    def _refuse(self, statement: LiveStatement, error: FrameError) -> None:
        for asker in tuple(self._askers.get(statement, ())):
            asker.refused(error)
            self.close(statement, asker)
