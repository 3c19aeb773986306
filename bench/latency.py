"""From the call of produce() to the moment at which a consumer of the changelog has the row."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from pathlib import Path

from arrivals import numbered
from load import History, Mixed, pace, produce
from processes import Helper, await_ready, in_process, say, signal_between
from report import Result
from stage import LEFT, PATIENCE_S, WHOLE, Run, Stage, fresh_topics, sparking

from liveboard.config import Board
from liveboard.errors import LiveboardError
from liveboard.pipeline.generation import Generation

_BOARDS = {"final_ui alone": LEFT, "default board": WHOLE}
_RATES = (100, 1_000)
_PERCENTILES = {"p50": 50.0, "p95": 95.0, "p99": 99.0, "p99.9": 99.9, "max": 100.0}
_TARGETS_MS = {(1_000, "p50"): 5.0, (1_000, "p99"): 30.0}
# The clients connect in the first seconds of a load, which are not counted.
_CONNECTING_S = 3
_ARRIVAL_S = 60.0


def latency(stage: Stage) -> list[Result]:
    """Even loads on the left join, alone and with all else that the default board has, over checkpoints."""
    timeout_s = PATIENCE_S + (len(_RATES) + 1) * (stage.sizes.latency_s + 2 * _ARRIVAL_S)
    return [
        result
        for name, board in _BOARDS.items()
        for result in in_process(f"latency, {name}", timeout_s, _measure, stage, name, board)
    ]


@dataclass(frozen=True)
class _Played:
    """What became of an even load."""

    latencies_ms: dict[str, list[float]]
    """Sorted, of every table."""
    late_ms: float
    began_ns: int
    ended_ns: int


@dataclass(frozen=True)
class _Player:
    """Plays numbered events to a generation that follows."""

    stage: Stage
    run: Run
    generation: Generation
    load: Mixed

    def play(self, first: int, rate: int, seconds: int) -> _Played:
        """Plays events from the given number on; those of the first seconds are left out of the figures."""
        count, uncounted = rate * (_CONNECTING_S + seconds), rate * _CONNECTING_S
        numbers = range(first, first + count)
        timeout_s = _CONNECTING_S + seconds + _ARRIVAL_S
        topics = {self.run.plan.changelog(table): table for table in self.run.plan.board.joins}
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
            topics[topic]: sorted(
                (arrived - sent.sent_ns[number - first]) / 1e6
                for number, arrived in times.items()
                if number >= first + uncounted
            )
            for topic, times in seen.items()
        }
        return _Played(latencies_ms, sent.late_s * 1e3, sent.sent_ns[uncounted], sent.sent_ns[-1])

    def _rows(self, table: str, numbers: range) -> int:
        """Every event is a row of the left join; only accounts are rows of the as-of join."""
        every = self.run.plan.board.joins[table].how == "left"
        return sum(every or not self.load.is_user(number) for number in numbers)

    def _check(self) -> None:
        if failures := self.generation.failures():
            raise LiveboardError(f"queries failed: {failures}")


def _measure(stage: Stage, name: str, board: Board) -> list[Result]:
    sizes = stage.sizes
    board = fresh_topics(stage, board)
    users, accounts = board.sources["users"].topic, board.sources["accounts"].topic
    produce(stage.bootstrap, History(users, accounts, sizes.latency_users, 0).events())
    results: list[Result] = []
    with sparking(stage) as spark:
        run = Run(stage, spark, board)
        generation = run.build(f"{sizes.latency_checkpoint_s} seconds")
        generation.follow()
        player = _Player(stage, run, generation, Mixed(users, accounts, sizes.latency_users))
        say(f"latency, {name}: warming up for {sizes.latency_warm_up_s} s")
        player.play(0, _RATES[-1], sizes.latency_warm_up_s)
        first = 1_000_000
        for rate in _RATES:
            say(f"latency, {name}: {rate} events/s for {sizes.latency_s} s")
            played = player.play(first, rate, sizes.latency_s)
            first += 1_000_000
            results += _results(f"latency, {name}, {rate:,}/s", rate, played)
            inside = _checkpoints(run.checkpoint / "join", played)
            results.append(Result(f"latency, {name}, {rate:,}/s, checkpoints inside", inside, ""))
        generation.stop()
        run.close()
    return results


def _results(name: str, rate: int, played: _Played) -> list[Result]:
    of_tables = [
        Result(f"{name}, {table}, {label}", _percentile(values, percent), "ms", _TARGETS_MS.get((rate, label)))
        for table, values in played.latencies_ms.items()
        for label, percent in _PERCENTILES.items()
    ]
    return [*of_tables, Result(f"{name}, producer behind its pace, max", played.late_ms, "ms")]


def _percentile(ordered: list[float], percent: float) -> float:
    return ordered[max(0, ceil(len(ordered) * percent / 100) - 1)]


def _checkpoints(query: Path, played: _Played) -> int:
    """How many checkpoints were finished inside; only the last two are kept."""
    commits = [path for path in (query / "commits").iterdir() if path.name.isdigit()]
    return sum(played.began_ns <= path.stat().st_mtime_ns <= played.ended_ns for path in commits)
