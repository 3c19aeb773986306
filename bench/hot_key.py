"""One key with a long history: the cost of an event grows with what its key remembers; a salt divides it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from arrivals import right_rows
from load import HotAsof, HotInner, burst, produce
from processes import Helper, await_ready, in_process, say, signal_between
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from report import Result
from stage import ASOF, INNER, PATIENCE_S, Run, Stage, check_alive, fresh_topics, sparking

from liveboard.config import Board
from liveboard.errors import LiveboardError

_SALTS = (16, 64, 1)
_LEAST_RATE = 2_000.0
_BOARDS = {"asof": ASOF, "inner": INNER}


def hot_key(stage: Stage) -> list[Result]:
    """Bursts on one key that has its history, as-of and inner, by salt."""
    results = []
    for how in _BOARDS:
        rates = in_process(f"hot_key, {how}", 2 * len(_SALTS) * PATIENCE_S, _rates, stage, how)
        results += [Result(f"hot_key, {how}, salt {salt}", rate, "events/s") for salt, rate in sorted(rates.items())]
        best = max(rates.values())
        results.append(Result(f"hot_key, {how}, best salt", best, "events/s", _LEAST_RATE, at_least=True))
    return results


def _rates(stage: Stage, how: str) -> dict[int, float]:
    rates = dict.fromkeys(_SALTS, 0.0)
    with sparking(stage) as spark:
        for salt in _SALTS:
            try:
                rates[salt] = _rate(stage, spark, how, salt)
            except LiveboardError as error:
                say(f"hot_key, {how}, salt {salt} failed: {error}")
    return rates


def _rate(stage: Stage, spark: SparkSession, how: str, salt: int) -> float:
    """Events per second until all are in the changelog, exactly as they must be."""
    name, sizes = f"hot_key, {how}, salt {salt}", stage.sizes
    events = sizes.hot_events if salt > 1 else sizes.hot_events_unsalted
    history = sizes.hot_rows - events  # the rest of the rows comes with a first burst, which is not counted
    board = fresh_topics(stage, _salted(_BOARDS[how], salt))
    users, accounts = board.sources["users"].topic, board.sources["accounts"].topic
    # Each enriching event of inner makes as many rows as the key has: a handful is enough.
    quarters = range(1, 4) if salt > 1 else range(1, 2)
    enriching = frozenset({0, *(sizes.hot_rows + events * part // 4 for part in quarters)})
    load = HotAsof(users, accounts) if how == "asof" else HotInner(users, accounts, enriching)
    say(f"{name}: building {history:,} events of one key")
    produce(stage.bootstrap, (load.event(number) for number in range(history)))
    run = Run(stage, spark, board)
    run.build_join()
    with run.following_join() as query:
        feeder = _Feeder(stage, run, query)
        for first in (history, sizes.hot_rows):
            say(f"{name}: {events:,} events as fast as possible")
            share, seconds = feeder.feed(load, first, events)
            if share < 1:
                say(f"{name}: only {share:.0%} of them after {seconds:.0f} s; going on without the others")
                break
    run.close()
    return share * events / seconds


def _salted(board: Board, salt: int) -> Board:
    return replace(board, joins={name: replace(join, salt=salt) for name, join in board.joins.items()})


@dataclass(frozen=True)
class _Feeder:
    stage: Stage
    run: Run
    query: StreamingQuery

    def feed(self, load: HotAsof | HotInner, first: int, count: int) -> tuple[float, float]:
        """Feeds a burst; returns the share of it that got through, all if there was time, and the seconds."""
        if isinstance(load, HotAsof):
            return self._feed_asof(load, first, count)
        return self._feed_inner(load, first, count)

    def _feed_asof(self, load: HotAsof, first: int, count: int) -> tuple[float, float]:
        """The right rows count: an enriching event corrects the driving ones that were quicker."""
        table, timeout_s = "user_account", self.stage.sizes.hot_patience_s
        topic, start = self.run.plan.changelog(table), self.run.end(table)
        ready = signal_between()
        consumer = Helper(
            "the consumer", right_rows, ready, self.stage.bootstrap, topic, start, first, count, timeout_s
        )
        await_ready(ready, "the consumer")
        started_ns = self._burst(load, first, count)
        right, at_ns = consumer.result(timeout_s + PATIENCE_S, self._check)
        wanted = sum(load.is_driving(number) for number in range(first, first + count))
        return right / wanted, (at_ns - started_ns) / 1e9

    def _feed_inner(self, load: HotInner, first: int, count: int) -> tuple[float, float]:
        """The number of rows counts: every pair comes once, with the later of the two."""
        table, timeout_s = "final_ui", self.stage.sizes.hot_patience_s
        start, wanted = self.run.end(table), load.pairs(first + count) - load.pairs(first)
        started_ns = self._burst(load, first, count)
        end, at_ns = self.run.await_end(table, start + wanted, timeout_s, self.query)
        if end > start + wanted:
            raise LiveboardError(f"{table}: expected {wanted} pairs, found {end - start}")
        if end == start + wanted:
            self.run.expect_rows({table: wanted}, since={table: start})
        return (end - start) / wanted, (at_ns - started_ns) / 1e9

    def _burst(self, load: HotAsof | HotInner, first: int, count: int) -> int:
        producer = Helper("the producer", burst, self.stage.bootstrap, load, first, count)
        return producer.result(PATIENCE_S, self._check).started_ns

    def _check(self) -> None:
        check_alive(self.query)
