"""Even loads of numbered events, and how long each event took from produce() to a consumer of the changelogs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from arrivals import numbered
from load import Load, pace
from processes import Helper, await_ready, signal_between
from run import Run, check
from stage import Stage

from liveboard.pipeline.generation import Generation

# The clients connect in the first seconds of a load, which are not counted.
CONNECTING_S = 3
ARRIVAL_S = 60.0


class Shown(Load, Protocol):
    """Numbered events of which it is known which ones are rows."""

    def shows(self, number: int, how: str) -> bool:
        """Whether the event of that number is seen in a join of that kind, or in an "aggregate"."""
        ...


@dataclass(frozen=True)
class Played:
    """What became of an even load."""

    latencies_ms: dict[str, list[float]]
    """Of every joined table and aggregate."""
    late_ms: float
    began_ns: int
    ended_ns: int


@dataclass(frozen=True)
class Player:
    """Plays numbered events to a generation that follows."""

    stage: Stage
    run: Run
    generation: Generation
    load: Shown

    def play(self, first: int, rate: int, seconds: int) -> Played:
        """Plays events from the given number on; those of the first seconds are left out of the figures."""
        count, uncounted = rate * (CONNECTING_S + seconds), rate * CONNECTING_S
        numbers = range(first, first + count)
        timeout_s = CONNECTING_S + seconds + ARRIVAL_S
        board = self.run.plan.board
        topics = {self.run.plan.changelog(table): table for table in (*board.joins, *board.aggregates)}
        wanted = {topic: self._rows(table, numbers) for topic, table in topics.items()}
        places = {topic: self.run.end(table) for topic, table in topics.items()}
        bootstrap = self.stage.bootstrap
        ready = signal_between()
        consumer = Helper("the consumer", numbered, ready, bootstrap, places, first, wanted, timeout_s)
        await_ready(ready, "the consumer")
        producer = Helper("the producer", pace, bootstrap, self.load, first, count, rate)
        sent = producer.result(timeout_s, self._check)
        seen = consumer.result(timeout_s, self._check)
        latencies_ms = {
            topics[topic]: [
                (arrived - sent.sent_ns[number - first]) / 1e6
                for number, arrived in times.items()
                if number >= first + uncounted
            ]
            for topic, times in seen.items()
        }
        return Played(latencies_ms, sent.late_s * 1e3, sent.sent_ns[uncounted], sent.sent_ns[-1])

    def _rows(self, table: str, numbers: range) -> int:
        join = self.run.plan.board.joins.get(table)
        how = join.how if join else "aggregate"
        return sum(self.load.shows(number, how) for number in numbers)

    def _check(self) -> None:
        check(self.generation)
