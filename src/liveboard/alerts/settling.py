"""Tells when a stream that was started again has written all that it had written before.

Spark goes on from its last checkpoint. What came after it is read once more, and rows pass once more through what they
were in between. Whoever counts what begins and ends has to let that pass.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from liveboard.contract.changelog import TS_AT, timestamp_text

# So long after its start a stream has written something, if there is anything to write once more.
QUIET_S = 10.0
# Of records whose times say nothing, such as those that were written to Kafka with times of long ago.
_PATIENCE_S = 120.0
# A record's joined rows are written right after its own row, or at the same time by another task.
_REST_S = 1.0


class Settling:
    """Watches the tables of the sources, whose rows have the times of their records, from the stream's start on.

    A source is through once it has a row of a record that is younger than the start, or is quiet.
    """

    def __init__(
        self, tables: Iterable[str], began_ms: int, quiet_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._began_ms = began_ms
        self._young = timestamp_text(began_ms).encode()
        self._quiet_s = quiet_s
        self._clock = clock
        self._began_s = clock()
        self._heard_s = dict.fromkeys(tables, self._began_s)
        self._through_s: dict[str, float] = {}

    def take(self, table: str, value: bytes | None, written_ms: int) -> None:
        """A row that came, and when it was written."""
        if table not in self._heard_s or written_ms < self._began_ms or table in self._through_s:
            return
        self._heard_s[table] = self._clock()
        if value is not None and value[TS_AT] >= self._young:
            self._through_s[table] = self._clock()

    @property
    def is_over(self) -> bool:
        """Whether all that comes from now on is new."""
        now = self._clock()
        if now - self._began_s >= _PATIENCE_S:
            return True
        rest_s = min(_REST_S, self._quiet_s)
        return all(
            now - self._through_s[table] >= rest_s if table in self._through_s else now - heard_s >= self._quiet_s
            for table, heard_s in self._heard_s.items()
        )
