"""Repairs: the rows that the stream could not answer, because it no longer remembers all records of their keys.

The stream writes who asks to a topic. A repair takes all that is in it, runs the batch job for those keys, and then
deletes what it took: what is in the topic is what is still to be done, whatever crashes.

The stream goes on meanwhile. Both may write the same row only while the stream still remembers records that, by the
topics' ends, are forgotten already: while it lags. Then the repair, which began earlier, may put an older row over a
newer one. So after each repair the changelogs are read from where they ended before it. If the stream has written a
row there which the repair then wrote otherwise, everything is repaired once more, from later ends. That repair also
writes all as-of rows that the one before can have written: a record that asked may have got an as-of row that by the
later ends belongs to another record. The first repair after a start does so too, because a crash may have ended the one
before.

What the stream writes after the repair is right, or will be: the stream still comes to the record that corrects it,
and answers it or asks.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

from confluent_kafka import Message

from liveboard.contract.status import PendingRepairs
from liveboard.kafka.admin import Admin, Offsets
from liveboard.kafka.reader import ChangelogReader, records_between
from liveboard.pipeline.generation import Generation
from liveboard.pipeline.plan import Plan

# A few repairs may follow each other at once: late records often come in bursts. Then there are pauses between them,
# which grow up to four times a repair's time, so that they take a fifth of the time however many are asked for.
_AT_ONCE = 4
_LONGEST_PAUSE = 4
_QUIET_S = 1.0
# Askers that one repair takes: they are sent to every task.
_MOST = 100_000


class _Asker(NamedTuple):
    memory: bytes
    key: bytes


class Repairs:
    """Hears what the stream of one generation asks for, and has it repaired."""

    def __init__(self, generation: Generation, plan: Plan, client_config: Mapping[str, str], admin: Admin) -> None:
        self._generation = generation
        self._plan = plan
        self._client_config = client_config
        self._admin = admin
        self._topic = plan.repairs
        self._reader = ChangelogReader(client_config, [self._topic]).__enter__()
        self._asked: dict[int, tuple[_Asker, float]] = {}
        self._thread = ThreadPoolExecutor(1, "repair")
        self._running: Future[bool] | None = None
        self._stop = 0
        self._began = self._next_at = 0.0
        self._in_a_row = 0
        # Whether the repair before perhaps wrote rows over newer ones: it did, it failed, or a crash ended it.
        self._is_doubtful = True
        # How far that one had read, if there was one since the start.
        self._ends: Offsets | None = None

    @property
    def pending(self) -> PendingRepairs | None:
        """The keys that wait, and since when the first of them does; None when there are none."""
        if not self._asked:
            return None
        asked = self._asked.values()
        return PendingRepairs(len({asker for asker, _ in asked}), min(since for _, since in asked))

    def advance(self) -> None:
        """Hears more, begins a repair, or sees one to its end; returns at once. A LiveboardError if one failed."""
        for change in self._reader.read(0):
            if change.value is not None:
                asker = _Asker(change.key.split(b" ", 1)[0], change.value)
                self._asked[change.offset] = (asker, change.timestamp_ms / 1000)
        if self._running is None:
            if self._asked and time.monotonic() >= self._next_at:
                self._begin()
        elif self._running.done():
            running, self._running = self._running, None
            now = time.monotonic()
            self._next_at = now + min(self._in_a_row // _AT_ONCE, _LONGEST_PAUSE) * (now - self._began)
            self._is_doubtful = True  # unless it has gone well
            if running.result():
                self._is_doubtful = False
                self._admin.delete_records(self._topic, self._stop)
                self._asked = {offset: asked for offset, asked in self._asked.items() if offset >= self._stop}

    def close(self) -> None:
        """Ends the connection; what was not repaired stays asked for."""
        self._reader.__exit__(None, None, None)
        self._thread.shutdown(wait=False)

    def _begin(self) -> None:
        offsets = sorted(self._asked)[:_MOST]
        now = time.monotonic()
        # A record that asks after a quiet pause begins a new row.
        self._in_a_row = self._in_a_row + 1 if now < self._next_at + _QUIET_S else 0
        self._stop, self._began = offsets[-1] + 1, now
        self._running = self._thread.submit(self._repair, (offsets[0], self._stop))

    def _repair(self, asking: tuple[int, int]) -> bool:
        """Repairs, and tells whether nothing newer was overwritten."""
        changelogs = {self._plan.changelog(join): 1 for join in self._plan.board.joins}
        before = self._admin.offsets(changelogs, "latest")
        # Asked after `before`: what the stream had written by then, it made from records below these ends.
        end = self._admin.offsets(self._admin.require(self._plan.starting_offsets), "latest")
        overtaken = (self._ends or end) if self._is_doubtful else None
        self._ends = end
        self._generation.repair(end, asking, overtaken=overtaken)
        after = self._admin.offsets(changelogs, "latest")
        return not _overwrites(records_between(self._client_config, before, after))


def _overwrites(messages: Iterator[Message]) -> bool:
    """Whether a repair, whose records have a header, wrote a row that the stream had written differently before."""
    streamed: dict[tuple[str | None, bytes | str | None], bytes | str | None] = {}
    for message in messages:
        key, value = (message.topic(), message.key()), message.value()
        if not message.headers():
            streamed[key] = value
        elif streamed.get(key, value) != value:
            return True
    return False
