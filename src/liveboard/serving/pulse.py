"""How the board lives: how many events came, and how many of them were rejected, for those who look at it."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping

import msgspec
import orjson

from liveboard.contract.names import ALERTS_TABLE, REJECTS_TABLE
from liveboard.serving.auth import Grant
from liveboard.serving.catalogue import Catalogue
from liveboard.serving.origins import Origins
from liveboard.serving.table import Table

# So many take a few milliseconds; the rest is counted when somebody asks again.
_COUNTED_AT_ONCE = 50_000
_WORTH_SAYING_S = 2.0


class SourcePulse(msgspec.Struct, frozen=True):
    """What came of one source; the rejects are None for keys that do not show them."""

    source: str
    table: str
    topic: str | None
    rows: int
    rejected: int | None
    reason: str | None
    """Why the newest rejected record was rejected."""


class Pulse(msgspec.Struct, frozen=True):
    """The board at one moment of the server's clock, in milliseconds since 1970."""

    time: float
    generation: str | None
    events: int
    """Records of the key's sources since the server began: rows that came or changed, and rejects."""
    sources: tuple[SourcePulse, ...]
    alerts: int | None = None
    """How many are raised; None where the board has none, or the key does not show them."""
    behind: dict[str, float] = {}
    """The views that are being looked at and are behind, and by how many seconds."""


class Pulses:
    """Belongs to the event loop."""

    def __init__(self, catalogue: Catalogue, lags: Callable[[], Mapping[str, float]] = dict) -> None:
        self._catalogue = catalogue
        self._lags = lags
        self._rejects = _Tally(None)

    def look(self, grant: Grant) -> Pulse:
        """What there is to know, as far as the key shows it."""
        catalogue = self._catalogue
        tables = {table.name: table for table in catalogue.named() if grant.shows(table.name)}
        status = catalogue.status
        origins = Origins(status.generations.get(catalogue.live or "") if status else None)
        rejects = tables.get(REJECTS_TABLE)
        if rejects is not None:
            self._count(rejects)
        events, found = 0, []
        for source, name in origins.tables.items():
            table, topic = tables.get(name), origins.topic(source)
            if table is None:
                continue
            rejected = None if rejects is None else self._rejects.by_topic[topic or ""]
            reason = self._rejects.reason(topic or "") if rejected else None
            events += table.updates + (rejected or 0)
            found.append(SourcePulse(source, name, topic, len(table), rejected, reason))
        raised = tables.get(ALERTS_TABLE)
        alerts = None if raised is None else len(raised)
        behind = {
            name: round(lag, 1) for name, lag in self._lags().items() if name in tables and lag >= _WORTH_SAYING_S
        }
        return Pulse(time.time() * 1000, catalogue.live, events, tuple(found), alerts, behind)

    def _count(self, rejects: Table) -> None:
        if self._rejects.table is not rejects:
            self._rejects = _Tally(rejects)
        self._rejects.count()


class _Tally:
    """Counts the rows of a rejects table by their topic, as they come; they never change."""

    def __init__(self, table: Table | None) -> None:
        self.table = table
        self.by_topic: Counter[str] = Counter()
        self._last: dict[str, bytes] = {}
        self._next = 0

    def count(self) -> None:
        """Goes on where it was."""
        assert self.table is not None
        begin = max(self._next, self.table.position_at(0))
        self._next = min(self.table.end, begin + _COUNTED_AT_ONCE)
        for position in range(begin, self._next):
            found = self.table.row(position)
            if found is not None:
                # ["topic",0,17,…: the name of a topic has nothing that JSON escapes.
                topic = found[1][2 : found[1].index(b'"', 2)].decode()
                self.by_topic[topic] += 1
                self._last[topic] = found[1]

    def reason(self, topic: str) -> str | None:
        """Why the newest reject of a topic was rejected."""
        row = self._last.get(topic)
        return None if row is None else str(orjson.loads(row)[3])
