"""Removes the rows of windows that have ended, from the changelogs of aggregates that keep theirs for a while.

Spark forgets such windows too, at its next checkpoint. Until then a late record writes the row of its window once
more, which is heard here, and the row is removed again.
"""

from __future__ import annotations

import functools
import heapq
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from liveboard.contract.board import Board
from liveboard.contract.changelog import TS_AT
from liveboard.kafka.reader import Change, ChangelogReader
from liveboard.orchestrator.workplace import Workplace
from liveboard.pipeline.plan import Plan

# Where the end of the window is in a row's key, which ends with it.
_END_AT = slice(-28, -1)
_PATTERN = "%Y-%m-%dT%H:%M:%S.%fZ"
_NEVER = b"~"  # after every time; of years that Python does not know

Row = tuple[str, bytes]
"""Changelog and key."""


class Windows:
    """Knows the rows of windows, and which of them have ended: by the newest time in any of the rows."""

    def __init__(self, keeps: Mapping[str, int]) -> None:
        """Changelog to how many milliseconds a window stays after its end."""
        self._keeps = keeps
        self._rows: set[Row] = set()
        self._ends: list[tuple[bytes, Row]] = []
        self._now = b""

    def hear(self, changes: Iterable[Change]) -> None:
        """Takes in what was written to the changelogs."""
        for change in changes:
            row = (change.topic, change.key)
            if change.value is None:
                self._rows.discard(row)
                continue
            self._now = max(self._now, change.value[TS_AT])
            self.add(row)

    def add(self, row: Row) -> None:
        """Says that a row is there."""
        if row not in self._rows:
            self._rows.add(row)
            heapq.heappush(self._ends, (_later(row[1][_END_AT], self._keeps[row[0]]), row))

    def ended(self) -> list[Row]:
        """The rows to be removed; each is told once, and again when it has been written again."""
        found = []
        while self._ends and self._ends[0][0] <= self._now:
            _, row = heapq.heappop(self._ends)
            if row in self._rows:
                self._rows.discard(row)
                found.append(row)
        return found


class Ending:
    """Removes ended rows of all generations that follow."""

    def __init__(self, work: Workplace) -> None:
        self._work = work
        self._generations: dict[str, EndingRows] = {}

    def advance(self) -> None:
        """Does what is to be done now; returns at once."""
        work = self._work
        if not keeping(work.board):
            return
        for name in work.running.following - self._generations.keys():
            self._generations[name] = EndingRows(work.plan(name), work.kafka.client_config)
        for rows in self._generations.values():
            rows.advance()

    def drop(self, name: str) -> None:
        """Ends the connections for the generation."""
        if name in self._generations:
            self._generations.pop(name).close()


class EndingRows:
    """Removes ended rows of one generation."""

    def __init__(self, plan: Plan, client_config: Mapping[str, str]) -> None:
        keeps = {plan.changelog(name): milliseconds for name, milliseconds in keeping(plan.board).items()}
        self._windows = Windows(keeps)
        self._reader = ChangelogReader(client_config, keeps).__enter__()
        patient = {"linger.ms": "5", "topic.metadata.refresh.interval.ms": "5000"}
        self._producer = Producer({**client_config, **patient, "log_level": 0, "error_cb": lambda _: None})

    def advance(self) -> None:
        """Hears what was written and removes what has ended; returns at once."""
        self._windows.hear(self._reader.read(0))
        for topic, key in self._windows.ended():
            try:
                self._producer.produce(topic, None, key, partition=0, on_delivery=self._delivered)
            except (BufferError, KafkaException):
                self._windows.add((topic, key))
        self._producer.poll(0)

    def close(self) -> None:
        """Ends the connections; what was not removed is found again by whoever comes next."""
        self._reader.__exit__(None, None, None)
        self._producer.purge()

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        """What Kafka did not take is tried again."""
        topic, key = message.topic(), message.key()
        if error and topic and isinstance(key, bytes):
            self._windows.add((topic, key))


def keeping(board: Board) -> dict[str, int]:
    """The aggregates whose windows end, and how many milliseconds after their end they are kept."""
    return {name: aggregate.keep for name, aggregate in board.aggregates.items() if aggregate.keep}


@functools.lru_cache(10_000)
def _later(moment: bytes, milliseconds: int) -> bytes:
    try:
        later = datetime.strptime(moment.decode(), _PATTERN) + timedelta(milliseconds=milliseconds)
    except (ValueError, OverflowError):
        return _NEVER
    return later.strftime(_PATTERN).encode()
