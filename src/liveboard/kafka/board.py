"""Follows a board as any reader does: its status, and its tables from the one generation to the next."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from types import TracebackType
from typing import NamedTuple, Self

from liveboard.contract.changelog import encode_row
from liveboard.contract.names import STATUS_TABLE, Names
from liveboard.contract.status import STATUS_KEY, BoardStatus, decode_status, status_row
from liveboard.kafka.reader import Change, ChangelogReader

_WAIT_S = 0.2


class KeptStatus(NamedTuple):
    """The board's status and when it was put on record."""

    status: BoardStatus
    timestamp_ms: int


class StatusReader:
    """Knows the newest record of the status topic; while there is none, or no broker, it waits for one."""

    def __init__(self, client_config: Mapping[str, str], names: Names) -> None:
        self.newest: KeptStatus | None = None
        self._reader = ChangelogReader(client_config, [names.status], last=1)

    def __enter__(self) -> Self:
        self._reader.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._reader.__exit__(kind, error, traceback)

    def look(self, timeout_s: float = 0.0) -> KeptStatus | None:
        """The newest record, after waiting up to the timeout for another one."""
        for change in self._reader.read(timeout_s):
            if change.value:
                status = decode_status(change.value)
                if status.follows(self.newest.status if self.newest else None):
                    self.newest = KeptStatus(status, change.timestamp_ms)
        return self.newest


def follow(
    client_config: Mapping[str, str], names: Names, tables: Iterable[str], last: int | None = None
) -> Generator[tuple[KeptStatus | None, list[Change]]]:
    """For ever, a few times a second at least: the board's status and what came in the tables that it shows.

    When it shows another generation, the rows that follow are that one's. The tables control_raw, alerts_ui and
    orchestrator_status belong to no generation. `last` asks for the last records of each table instead of all.
    """
    tables = list(tables)
    ours = [topic for table, topic in names.own_changelogs.items() if table in tables]
    of_generation = [table for table in tables if table not in (*names.own_changelogs, STATUS_TABLE)]
    row_before: bytes | None = None
    with StatusReader(client_config, names) as reader:
        while True:
            generation = kept.status.shown if (kept := reader.look(_WAIT_S)) else None
            topics = [names.changelog(generation, table) for table in of_generation] if generation else []
            with ChangelogReader(client_config, [*topics, *ours], last) as rows:
                while kept is None or kept.status.shown == generation:
                    changes = rows.read(_WAIT_S) if topics or ours else []
                    if kept and STATUS_TABLE in tables and (row := encode_row(status_row(kept.status))) != row_before:
                        changes.append(Change(names.status, STATUS_KEY, row, kept.timestamp_ms))
                        row_before = row
                    yield kept, changes
                    kept = reader.look(0.0 if topics or ours else _WAIT_S)
