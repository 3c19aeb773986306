"""Tells when a stream that follows its topics from the beginning has come as far as they were when it began."""

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from liveboard.contract.names import REJECTS_TABLE
from liveboard.kafka.admin import Admin, Offsets
from liveboard.kafka.reader import ChangelogReader, records_between
from liveboard.pipeline.plan import Plan

# Records may be gone before Spark comes to them: retention deletes while we wait.
_PATIENCE_S = 60.0
# A record's joined rows are written right after its own row, or at the same time by another task.
_SETTLE_S = 0.05


class CatchingUp:
    """Waits for the own rows of all records up to `end`, in the tables of the sources or in the rejects.

    To be made before the stream is started: what an earlier one has left in the changelogs does not count, since its
    joined rows may be missing.
    """

    def __init__(self, plan: Plan, end: Offsets, client_config: Mapping[str, str], admin: Admin) -> None:
        sources = plan.board.sources.values()
        self._prefixes = {plan.changelog(source.table): f"{source.topic}-".encode() for source in sources}
        self._prefixes[plan.changelog(REJECTS_TABLE)] = b""
        now = admin.offsets(dict.fromkeys(self._prefixes, 1), "latest")
        self._reader = ChangelogReader(client_config, self._prefixes, start=now).__enter__()
        self._thread = ThreadPoolExecutor(1, "history")
        self._records = self._thread.submit(_records, plan.starting_offsets, end, client_config)
        self._written: set[bytes] = set()
        self._grew_at = self._awaited_at = time.monotonic()

    def is_done(self) -> bool:
        """Whether the tables are complete; returns at once. A LiveboardError where the topics cannot be read."""
        now = time.monotonic()
        for change in self._reader.read(0):
            self._written.add(self._prefixes[change.topic] + change.key)
            self._grew_at = now
        is_awaited = not self._records.done() or not self._records.result() <= self._written
        if is_awaited and now - self._grew_at < _PATIENCE_S:
            self._awaited_at = now
        return now - self._awaited_at >= _SETTLE_S

    def be_patient(self) -> None:
        """The stream is held up, and writes nothing for a while."""
        self._grew_at = self._awaited_at = time.monotonic()

    def close(self) -> None:
        """Ends the connections."""
        self._reader.__exit__(None, None, None)
        self._thread.shutdown(wait=False)


def _records(start: Offsets, end: Offsets, client_config: Mapping[str, str]) -> set[bytes]:
    """The places (topic-partition-offset) of all records with a value: those that have a row, whatever is in them."""
    return {
        f"{record.topic()}-{record.partition()}-{record.offset()}".encode()
        for record in records_between(client_config, start, end)
        if record.value() is not None
    }
