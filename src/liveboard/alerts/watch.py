"""One alert and the rows that concern it: which match, which of those are raised, and which still wait for `for`."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import orjson

from liveboard.alerts.predicate import Row, predicate
from liveboard.config import AlertSettings
from liveboard.contract.changelog import timestamp_text
from liveboard.contract.schema import Column

AlertState = Literal["raised", "cleared"]


class AlertChange(NamedTuple):
    """An alert that is raised or cleared for a row."""

    alert: str
    table: str
    key: str
    state: AlertState
    ts_ms: int
    since_ms: int
    """Since when the row has matched."""
    row: dict[str, Any] | None
    """The row as it is now; None where it is gone."""

    def encode(self) -> bytes:
        """The value of the alerts topic's record."""
        names = {"alert": self.alert, "table": self.table, "key": self.key, "state": self.state}
        return orjson.dumps({**names, "ts": timestamp_text(self.ts_ms), "row": self.row})


class Match(NamedTuple):
    """A row that fulfils the conditions, and since when."""

    since_ms: int
    row: Row


class Watch:
    """Follows the rows of one table; knows which are raised from what was told before.

    Until `settle` is called it only gathers. `settle` compares what matches with what is raised, so that what went to
    and fro meanwhile is told as it ended. From then on every change counts.
    """

    def __init__(
        self,
        alert: AlertSettings,
        columns: Sequence[Column],
        raised: set[str],
        now_ms: Callable[[], int],
        since: Mapping[str, int] | None = None,
    ) -> None:
        """`since` has the times of rows that matched in the generation before."""
        self.name = alert.name
        self.table = alert.table
        self.raised = raised
        """The keys of the rows that it is raised for."""
        self.is_settled = False
        self._columns = [column.name for column in columns]
        self._matches = predicate(columns, alert.when)
        self._wait_ms = alert.for_.milliseconds if alert.for_ else 0
        self._now_ms = now_ms
        self._since = since or {}
        self._matching: dict[str, Match] = {}
        self._left: dict[str, Row] = {}
        self._due: list[tuple[int, str]] = []

    def take(self, key: str, row: Row | None, ts_ms: int) -> list[AlertChange]:
        """A row has changed at this time, or is gone."""
        if row is not None and self._matches(row):
            before = self._matching.get(key)
            self._matching[key] = match = Match(before.since_ms if before else self._since.get(key, ts_ms), row)
            if not self.is_settled or before or key in self.raised:
                return []
            return self._begin(key, match)
        before = self._matching.pop(key, None)
        if not self.is_settled:
            if key in self.raised:
                if row is None:
                    self._left.pop(key, None)
                else:
                    self._left[key] = row
            return []
        changes = []
        if before and key not in self.raised and ts_ms - before.since_ms >= self._wait_ms:
            # It was long enough before it ended; we had only not come to it.
            changes.append(self._raise(key, before))
        return [*changes, self._clear(key, row)] if key in self.raised else changes

    def settle(self) -> list[AlertChange]:
        """All rows have been taken as they are now; from here on every change counts."""
        self.is_settled = True
        changes = [self._clear(key, self._left.get(key)) for key in sorted(self.raised - self._matching.keys())]
        self._left.clear()
        self._since = {}
        for key, match in self._matching.items():
            if key not in self.raised:
                changes += self._begin(key, match)
        return changes

    def unsettle(self) -> None:
        """Only gathers again: what comes may be old rows that are written once more."""
        self.is_settled = False
        self._due.clear()

    @property
    def since(self) -> dict[str, int]:
        """Since when each row that matches has done so."""
        return {key: match.since_ms for key, match in self._matching.items()}

    def due(self) -> list[AlertChange]:
        """Those whose waiting is over."""
        changes, now = [], self._now_ms()
        while self._due and self._due[0][0] <= now:
            _, key = heapq.heappop(self._due)
            match = self._matching.get(key)
            if match and key not in self.raised and match.since_ms + self._wait_ms <= now:
                changes.append(self._raise(key, match))
        return changes

    def _begin(self, key: str, match: Match) -> list[AlertChange]:
        at = match.since_ms + self._wait_ms
        if not self._wait_ms or at <= self._now_ms():
            return [self._raise(key, match)]
        heapq.heappush(self._due, (at, key))
        return []

    def _raise(self, key: str, match: Match) -> AlertChange:
        self.raised.add(key)
        return self._change(key, "raised", match.since_ms, match.row)

    def _clear(self, key: str, row: Row | None) -> AlertChange:
        self.raised.discard(key)
        return self._change(key, "cleared", self._now_ms(), row)

    def _change(self, key: str, state: AlertState, since_ms: int, row: Row | None) -> AlertChange:
        named = None if row is None else dict(zip(self._columns, row, strict=True))
        now = self._now_ms()
        return AlertChange(self.name, self.table, key, state, now, min(since_ms, now), named)
