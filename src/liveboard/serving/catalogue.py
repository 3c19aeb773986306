"""Which tables there are, and which of them a name means."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator

from liveboard.contract.changelog import encode_row
from liveboard.contract.frames import Code, FrameError, TableInfo
from liveboard.contract.names import ALERTS_TABLE, CONTROL_TABLE, STATUS_TABLE, generation_number, is_table_name
from liveboard.contract.schema import Column
from liveboard.contract.status import STATUS_KEY, BoardStatus, State, status_columns, status_row
from liveboard.serving.auth import Grant
from liveboard.serving.origins import Origins
from liveboard.serving.table import Applied, Change, Table

FOLLOWED = (State.BUILDING, State.LIVE, State.RETIRING)

_log = logging.getLogger(__name__)


class Watcher:
    """Is told what becomes of the tables; in the event loop, before anything else happens to them."""

    def applied(self, table: Table, applied: Applied) -> None:
        """Rows have changed."""

    def rebound(self) -> None:
        """Names mean other tables than before; the old ones are still there."""

    def dropped(self, table: Table) -> None:
        """A table is gone."""


class Catalogue:
    """The loaded tables. Belongs to the event loop; the feed fills it.

    Names mean the generation that is to be shown once all of its tables are loaded, and until then the one before, also
    when the board has closed it. The table orchestrator_status changes in the same step.
    """

    def __init__(self) -> None:
        self.status: BoardStatus | None = None
        self.live: str | None = None
        """The generation that names mean here."""
        self.watcher = Watcher()
        """Who is told; nobody until the server says who."""
        self._tables: dict[tuple[str | None, str], Table] = {}

    @property
    def is_ready(self) -> bool:
        """Whether something is live, and names mean here what they are to mean."""
        return self.status is not None and self.status.live is not None and self.live == self.status.shown

    @property
    def missing(self) -> list[str]:
        """The tables beside the generation's that are not loaded yet."""
        own = (CONTROL_TABLE, ALERTS_TABLE) if self.status and self.status.alerts else (CONTROL_TABLE,)
        return [name for name in own if (None, name) not in self._tables]

    def __iter__(self) -> Iterator[Table]:
        return iter(tuple(self._tables.values()))

    def get(self, generation: str | None, name: str) -> Table | None:
        """A loaded table, whoever may see it."""
        return self._tables.get((generation, name))

    def named(self) -> list[Table]:
        """The tables that names mean: those of the generation in the board's order, then the others by name."""
        record = self.status.generations.get(self.live or "") if self.status else None
        places = {name: place for place, name in enumerate(record.tables if record else ())}
        tables = [table for (generation, _), table in self._tables.items() if generation in (None, self.live)]
        return sorted(tables, key=lambda table: (places.get(table.name, len(places)), table.name))

    def infos(self, grant: Grant) -> tuple[TableInfo, ...]:
        """The tables that names mean, as viewers with a key are told of them."""
        origins = Origins(self.status.generations.get(self.live or "") if self.status else None)
        return tuple(
            TableInfo(
                table.name, table.wire, len(table), origins.kind(table.name) or ("" if table.has_newest else "view")
            )
            for table in self.named()
            if grant.shows(table.name)
        )

    def find(self, grant: Grant, name: str, generation: str | None = None) -> Table:
        """What a name means, or a table of one generation; otherwise a FrameError.

        A table that the key does not show is answered like one that does not exist.
        """
        if not is_table_name(name):
            raise FrameError(
                Code.BAD_NAME, f'expected a table name of letters, digits and "_" like "final_ui", found "{name[:100]}"'
            )
        keys = [(generation, name)] if generation is not None else [(self.live, name), (None, name)]
        for key in keys:
            if key in self._tables and grant.shows(name):
                return self._tables[key]
        raise FrameError(Code.UNKNOWN_TABLE, self._unknown(grant, name, generation))

    def loaded(self, table: Table) -> None:
        """A table has been read for the first time."""
        self._tables[table.generation, table.name] = table
        _log.info("table loaded", extra={"table": table.name, "generation": table.generation, "rows": len(table)})
        if table.generation is None or (None, table.name) in self._tables:
            self.watcher.rebound()
        self._bind()

    def remove(self, name: str) -> None:
        """Takes away a table that belongs to no generation, if there is one of the name."""
        table = self._tables.pop((None, name), None)
        if table is not None:
            _log.info("table dropped", extra={"table": name, "generation": None})
            self.watcher.rebound()
            self.watcher.dropped(table)

    def changed(self, generation: str | None, name: str, changes: Iterable[Change]) -> None:
        """Rows of a loaded table have changed."""
        table = self._tables.get((generation, name))
        if table is not None:
            self.watcher.applied(table, table.apply(changes))

    def status_changed(self, status: BoardStatus) -> None:
        """The board has another status."""
        self.status = status
        self._bind()

    def _bind(self) -> None:
        status = self.status
        if status is None:
            return
        if status.shown is not None and status.shown != self.live and self._is_loaded(status.shown):
            _log.info("names bound", extra={"generation": status.shown, "before": self.live})
            self.live = status.shown
            self._show_status(status)
            self.watcher.rebound()
        elif status.shown is None or self.live in (None, status.shown):
            self._show_status(status)
        followed = {name for name, record in status.generations.items() if record.state in FOLLOWED}
        for table in self:
            has_no_alerts = table.generation is None and table.name == ALERTS_TABLE and not status.alerts
            if has_no_alerts or table.generation not in (None, self.live, *followed):
                del self._tables[table.generation, table.name]
                _log.info("table dropped", extra={"table": table.name, "generation": table.generation})
                self.watcher.dropped(table)

    def _is_loaded(self, generation: str) -> bool:
        record = self.status.generations.get(generation) if self.status else None
        return record is not None and all((generation, name) in self._tables for name in record.tables)

    def _show_status(self, status: BoardStatus) -> None:
        columns: tuple[Column, ...] = status_columns(status.sources)
        row = encode_row(status_row(status))
        table = self._tables.get((None, STATUS_TABLE))
        if table is None or table.columns != columns:
            self._tables[None, STATUS_TABLE] = Table(STATUS_TABLE, None, columns, {STATUS_KEY: row})
            if table is not None:
                self.watcher.rebound()
        else:
            self.watcher.applied(table, table.apply([(STATUS_KEY, row)]))

    def _unknown(self, grant: Grant, name: str, generation: str | None) -> str:
        name = name[:100]
        if generation is None:
            known = ", ".join(table.name for table in self.named() if grant.shows(table.name))
            return f'expected a table ({known or "none is loaded yet"}), found "{name}"'
        generation = generation[:100]
        generations = {table.generation for table in self if table.generation is not None and grant.shows(table.name)}
        known = ", ".join(sorted(generations, key=generation_number))
        return f'expected a table of a generation that is kept ({known or "none"}), found "{name}" of "{generation}"'
