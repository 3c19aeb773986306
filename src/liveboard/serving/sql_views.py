"""The views of the configuration, those that admins define, and the statements that viewers have live.

A view is a table of the catalogue, evaluated over all tables whoever looks at it. One of the configuration is shown to
the keys that name it; one that an admin has defined, to the keys that show all tables that it reads. A viewer's
statement is a table for those alone who asked the same with keys that show the same, over what these keys show. Views
and viewers' statements have a process each, so that these disturb no view.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from liveboard.config import LimitSettings
from liveboard.contract.board import View
from liveboard.contract.frames import Code, FrameError
from liveboard.contract.names import RESERVED_TABLES
from liveboard.contract.schema import Column
from liveboard.serving.answers import Answers
from liveboard.serving.auth import Grant
from liveboard.serving.catalogue import Catalogue
from liveboard.serving.live_statements import Audience, LiveStatement
from liveboard.serving.metrics import Counters
from liveboard.serving.table import Applied, Table
from liveboard.serving.views import Views
from liveboard.sql.messages import SqlAnswer

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

    def __init__(
        self, views: Sequence[View], catalogue: Catalogue, windows: Views, limits: LimitSettings, counters: Counters
    ) -> None:
        self.defined: dict[str, tuple[str, ...]] = {}
        """The views of admins that there are, and the tables that each reads."""
        self._configured = views
        self._catalogue = catalogue
        self._windows = windows
        windows.opened = self._call
        self._limits = limits
        self._of_views = Answers("view", limits, counters)
        self._of_viewers = Answers(QUERY, limits, counters)
        self._views: dict[str, LiveStatement] = {}
        self._definitions: dict[str, View] = {}
        self._asked: dict[tuple[str, frozenset[str] | None], LiveStatement] = {}
        self._askers: dict[LiveStatement, set[Asker]] = {}
        self._why: dict[str, FrameError] = {}
        self._of_board = Audience(shown=self._show, refused=self._complain, is_there=self._is_watched)
        self._of_askers = Audience(shown=self._tell, refused=self._refuse)

    @property
    def is_working(self) -> bool:
        """Whether a view is being evaluated."""
        return self._of_views.is_working

    def start(self) -> None:
        """Begins with the views of the configuration."""
        for place, view in enumerate(self._configured):
            self._begin(view, frozenset(other.name for other in self._configured[place:]))

    def define(self, name: str, view: View | None) -> None:
        """A view of an admin, or another one of that name, or none any more."""
        if view == self._definitions.get(name):
            return
        if name in self._definitions:
            del self._definitions[name]
            if statement := self._views.pop(name, None):
                statement.end()
                # Another one takes its place as soon as it is answered.
                if view is None:
                    self._withdraw(name)
        if view is not None:
            self._definitions[name] = view
            if self._is_taken(name):
                _log.warning("view not shown", extra={"view": name, "reason": "another table has its name"})
            else:
                self._begin(view)

    async def reads(self, grant: Grant, view: View) -> tuple[str, ...]:
        """The tables that a view would read; a FrameError if it is not allowed, or cannot be answered."""
        if self._is_taken(view.name):
            raise FrameError(Code.BAD_NAME, f'expected a name that no other table has, found "{view.name}"')
        asking = self._of_viewers.asking(view.sql, lambda: self._readable(grant), view.key, is_lasting=True)
        await self._of_viewers.answer(asking)
        return asking.reads

    @property
    def missing(self) -> list[str]:
        """The configured views that have not been evaluated yet; one whose statement fails is not waited for."""
        names = [view.name for view in self._configured]
        return [name for name in names if self._views[name].table is None and name not in self._why]

    async def stop(self) -> None:
        """Ends all of them."""
        for statement in (*self._views.values(), *self._asked.values()):
            statement.end()
        await self._of_views.stop()
        await self._of_viewers.stop()

    async def ask(self, grant: Grant, sql: str) -> tuple[tuple[Column, ...], SqlAnswer]:
        """One answer, over the tables that the key shows; a FrameError if there is none."""
        named = sql.lower()
        for view in tuple(self._views.values()):
            if view.table is not None and view.name.lower() in named:
                await self.bring_up_to_date(view.table)
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
                QUERY, sql, self._of_viewers, lambda: self._shown_to(grant), (), self._of_askers
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
            for statement in (*self._views.values(), *self._asked.values()):
                statement.applied(table)

    def dropped(self, table: Table) -> None:
        """A table is gone."""
        for answers in (self._of_views, self._of_viewers):
            answers.dropped(table)
        self._look_at_names()

    def rebound(self) -> None:
        """Names mean other tables."""
        # What a view names may be there now.
        self._why = {name: why for name, why in self._why.items() if why.code is not Code.UNKNOWN_TABLE}
        self._look_at_names()
        for statement in (*self._views.values(), *self._asked.values()):
            statement.rebound()

    async def bring_up_to_date(self, table: Table) -> None:
        """Before the rows of a table are read: if it is a view that nobody watches, it has all that there is now."""
        statement = self._of(table)
        if statement is not None:
            for used in statement.uses:
                await self.bring_up_to_date(used)
            await statement.newer()

    def lags(self) -> dict[str, float]:
        """The views that somebody watches, and for how many seconds each has not had what has changed."""
        return {
            name: statement.behind_s
            for name, statement in self._views.items()
            if statement.table is not None and self._is_watched(statement)
        }

    def _of(self, table: Table) -> LiveStatement | None:
        statement = self._views.get(table.name)
        return statement if statement is not None and statement.table is table else None

    def _is_watched(self, statement: LiveStatement) -> bool:
        """Whether its rows are in somebody's window, or in what somebody watches."""
        table = statement.table
        if table is None or self._windows.has(table):
            return table is not None
        return any(table in asked.uses for asked in self._asked.values()) or any(
            table in view.uses and self._is_watched(view) for view in self._views.values()
        )

    def _call(self, table: Table) -> None:
        """Somebody looks at a table, and at those that it is made of."""
        statement = self._of(table)
        if statement is not None:
            statement.call()
            for used in statement.uses:
                self._call(used)

    def _shown_to(self, grant: Grant) -> Mapping[str, Table]:
        return {table.name: table for table in self._catalogue.named() if grant.shows(table.name)}

    def _readable(self, grant: Grant) -> Mapping[str, Table]:
        """What a view of an admin may read: tables and views that are there without it, so that none reads itself."""
        return {name: table for name, table in self._shown_to(grant).items() if name not in self._definitions}

    def _begin(self, view: View, but: Collection[str] | None = None) -> None:
        def tables() -> Mapping[str, Table]:
            left_out = self._definitions if but is None else {*but, *self._definitions}
            return {table.name: table for table in self._catalogue.named() if table.name not in left_out}

        self._views[view.name] = LiveStatement(view.name, view.sql, self._of_views, tables, view.key, self._of_board)

    def _is_taken(self, name: str) -> bool:
        """Whether a table, or a view of the configuration, has the name of a view that an admin defines."""
        return (
            name in RESERVED_TABLES
            or any(view.name == name for view in self._configured)
            or any(table.name == name and table.generation is not None for table in self._catalogue)
        )

    def _look_at_names(self) -> None:
        """Shows the views of admins whose names are free, and no others."""
        for name, view in tuple(self._definitions.items()):
            if name not in self._views and not self._is_taken(name):
                self._begin(view)
            elif name in self._views and self._is_taken(name):
                _log.warning("view not shown", extra={"view": name, "reason": "another table has its name"})
                self._views.pop(name).end()
                self._withdraw(name)

    def _withdraw(self, name: str) -> None:
        self._catalogue.remove(name)
        self.defined.pop(name, None)

    def _show(self, statement: LiveStatement, applied: Applied | None) -> None:
        assert statement.table is not None
        self._why.pop(statement.name, None)
        if statement.name in self._definitions:
            self.defined[statement.name] = statement.reads
        if applied is None:
            self._catalogue.loaded(statement.table)
        else:
            self._catalogue.watcher.applied(statement.table, applied)

    def _complain(self, statement: LiveStatement, error: FrameError) -> None:
        """A view that cannot be evaluated stays as it was."""
        is_all_there = self._catalogue.is_ready and not self._catalogue.missing
        is_early = error.code is Code.UNKNOWN_TABLE and (statement.is_due or not is_all_there)
        if not is_early and str(self._why.get(statement.name)) != str(error):
            self._why[statement.name] = error
            _log.warning("view not evaluated", extra={"view": statement.name, "reason": str(error)})

    def _tell(self, statement: LiveStatement, applied: Applied | None) -> None:
        assert statement.table is not None
        if applied is not None:
            self._catalogue.watcher.applied(statement.table, applied)
            return
        for used in statement.uses:
            self._call(used)
        for asker in tuple(self._askers.get(statement, ())):
            asker.answered(statement.table)

    def _refuse(self, statement: LiveStatement, error: FrameError) -> None:
        for asker in tuple(self._askers.get(statement, ())):
            asker.refused(error)
            self.close(statement, asker)
