"""B33: what is asked for is repaired, again where the stream was faster, and forgotten by no crash."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import count
from typing import Any, cast

import boards
import pytest
from boards import FIRST_MS, with_suffix
from confluent_kafka import Producer
from harness import PATIENCE_S, Bench, Event, until

from liveboard.contract.errors import LiveboardError
from liveboard.kafka.admin import Offsets
from liveboard.orchestrator.repairs import Repairs
from liveboard.pipeline.generation import Generation
from liveboard.pipeline.history import REPAIR_HEADER

pytestmark = pytest.mark.integration
_runs = count(1)


class Played:
    """Plays the stream and the batch job of a generation with one join, `left`."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._producer = Producer({"bootstrap.servers": bench.bootstrap, "log_level": 0})
        self.job: Callable[[], None] = lambda: self.write("old", repair=True)
        self.asked: list[tuple[int, int]] = []
        """What each repair was asked for."""
        self.ends: list[Offsets] = []
        """How far each was to read."""
        self.overtaken: list[Offsets | None] = []
        """How far the one before had read, where it perhaps wrote rows over newer ones."""

    def ask(self, who: str) -> None:
        self._send(self._bench.plan().repairs, who, '"u"')

    def write(self, value: str, *, repair: bool = False) -> None:
        headers: Any = [(REPAIR_HEADER, b"")] if repair else None
        self._send(self._bench.plan().changelog("left"), "0-1", value, headers)

    def repair(self, end: Offsets, asking: tuple[int, int], *, overtaken: Offsets | None) -> None:
        self.asked.append(asking)
        self.ends.append(end)
        self.overtaken.append(overtaken)
        self.job()

    def _send(self, topic: str, key: str, value: str, headers: Any = None) -> None:
        self._producer.produce(topic, value.encode(), key.encode(), headers=headers)
        assert self._producer.flush(PATIENCE_S) == 0


@pytest.fixture
def bench(kafka: str) -> Iterator[Bench]:
    with closing(Bench(kafka, with_suffix(boards.one_join("left", 1), f"repairs-{next(_runs)}"))) as bench:
        bench.create_topics()
        yield bench


def repairs_of(bench: Bench, played: Played) -> Repairs:
    plan = bench.plan()
    return Repairs(cast(Generation, played), plan, {"bootstrap.servers": bench.bootstrap}, bench.admin)


def advance_until(repairs: Repairs, condition: Callable[[], object], waiting_for: str) -> None:
    """Goes on with repairs until the condition holds."""

    def holds() -> bool:
        repairs.advance()
        return bool(condition())

    until(holds, waiting_for)


def expect_all_done(repairs: Repairs, played: Played, after: int = 0) -> None:
    """Waits until more repairs than that were begun, and nothing waits for one any more."""
    advance_until(repairs, lambda: len(played.asked) > after and repairs.pending is None, "the end of all repairs")


def test_keys_wait_until_they_are_repaired(bench: Bench) -> None:
    played, seen = Played(bench), threading.Event()

    def job() -> None:
        assert seen.wait(PATIENCE_S)

    played.job = job
    with closing(repairs_of(bench, played)) as repairs:
        assert repairs.pending is None
        begun = int(time.time() * 1000) / 1000
        played.ask("0 b 0-7")
        asked = time.time()
        played.ask("0 b 0-8")
        played.ask("1 b 0-8")
        advance_until(repairs, lambda: repairs.pending and repairs.pending.keys == 2, "two keys that wait")
        assert repairs.pending
        assert begun <= repairs.pending.since <= asked
        seen.set()
        expect_all_done(repairs, played)
    with closing(repairs_of(bench, played)) as repairs:
        played.ask("0 b 0-9")
        expect_all_done(repairs, played, after=len(played.asked))
    first, *_, last = played.asked
    assert (first[0], last) == (0, (3, 4))


@pytest.mark.parametrize(
    ("before", "after", "times"),
    [("newer", None, 2), ("old", None, 1), (None, "newer", 1), (None, None, 1)],
    ids=["written otherwise before", "the same before", "written after", "not written"],
)
def test_a_repair_that_overtook_the_stream_is_made_again(
    bench: Bench, before: str | None, after: str | None, times: int
) -> None:
    played = Played(bench)

    def job() -> None:
        first = len(played.asked) == 1
        bench.produce([Event("users", b"{}", FIRST_MS)])
        if before and first:
            played.write(before)
        played.write("old" if first else "newer", repair=True)
        if after and first:
            played.write(after)

    played.job = job
    played.ask("0 b 0-7")
    with closing(repairs_of(bench, played)) as repairs:
        expect_all_done(repairs, played)
        played.ask("0 b 0-8")
        expect_all_done(repairs, played, after=times)
    assert played.asked == [(0, 1)] * times + [(1, 2)]
    # Nobody knows how far the one before the start had read.
    assert played.overtaken == [played.ends[0], *played.ends[: times - 1], None]


def test_what_fails_stays_asked_for(bench: Bench) -> None:
    played = Played(bench)

    def fails() -> None:
        raise LiveboardError("no room")

    job, played.job = played.job, fails
    played.ask("0 b 0-7")
    with closing(repairs_of(bench, played)) as repairs:
        with pytest.raises(LiveboardError, match="no room"):
            advance_until(repairs, lambda: False, "the failure")
        assert repairs.pending
        played.job = job
    with closing(repairs_of(bench, played)) as repairs:
        expect_all_done(repairs, played, after=1)
    assert played.asked == [(0, 1), (0, 1)]
