"""What following costs once it runs: the most events per second, memory, and idle CPU."""

from __future__ import annotations

import time

import psutil
from load import Accounts, Burst, History, burst, produce
from processes import Helper, in_process, say
from pyspark.sql.streaming.query import StreamingQuery
from report import Result
from stage import (
    LEFT,
    PATIENCE_S,
    WHOLE,
    Run,
    Stage,
    check_alive,
    driver_processes,
    fresh_topics,
    sparking,
)

from liveboard.config import Board
from liveboard.errors import LiveboardError

_MOST_GB = 1.5
_SETTLE_S = 5.0
_TABLE = "final_ui"


def follow_throughput(stage: Stage) -> list[Result]:
    """A burst of accounts while the left join follows, once it is warm."""
    return in_process("follow_throughput", 4 * PATIENCE_S, _throughput, stage)


def memory(stage: Stage) -> list[Result]:
    """The driver's memory after the left join's build and while it follows; the CPU of an idle board."""
    return in_process("memory", 6 * PATIENCE_S, _memory, stage)


def _throughput(stage: Stage) -> list[Result]:
    sizes = stage.sizes
    board = fresh_topics(stage, LEFT)
    _produce_history(stage, board, accounts=0)
    with sparking(stage) as spark:
        run = Run(stage, spark, board)
        run.build_join()
        with run.following_join() as query:
            say(f"follow_throughput: warming up with {sizes.follow_warm_up:,} accounts")
            _burst(stage, run, query, 0, sizes.follow_warm_up)
            say(f"follow_throughput: {sizes.accounts:,} accounts as fast as possible")
            given, seconds = _burst(stage, run, query, sizes.follow_warm_up, sizes.accounts)
        run.close()
    return [
        Result("follow_throughput, left", sizes.accounts / seconds, "events/s"),
        Result("follow_throughput, the producer alone", sizes.accounts / given.seconds, "events/s"),
    ]


def _memory(stage: Stage) -> list[Result]:
    sizes = stage.sizes
    left = fresh_topics(stage, LEFT)
    _produce_history(stage, left, sizes.accounts)
    with sparking(stage) as spark:
        say("memory: building the left join")
        run = Run(stage, spark, left)
        run.build_join()
        results = [_rss("memory, driver after the left build")]
        with run.following_join() as query:
            say(f"memory: following {sizes.follow_warm_up:,} accounts")
            _burst(stage, run, query, 0, sizes.follow_warm_up)
            results.append(_rss("memory, driver while the left join follows"))
        run.close()
        say("memory: building the default board")
        whole = Run(stage, spark, Board(sources=left.sources, joins=WHOLE.joins))
        generation = whole.build()
        generation.follow()
        time.sleep(_SETTLE_S)
        say(f"memory: the default board idles for {sizes.idle_s} s")
        percent = _cpu_percent(sizes.idle_s)
        if failures := generation.failures():
            raise LiveboardError(f"queries failed: {failures}")
        results += [
            _rss("memory, driver while the default board follows"),
            Result("memory, idle CPU of the default board", percent, "% of a core"),
        ]
        generation.stop()
        whole.close()
    return results


def _produce_history(stage: Stage, board: Board, accounts: int) -> None:
    users_topic, accounts_topic = (board.sources[name].topic for name in ("users", "accounts"))
    say(f"producing {stage.sizes.users:,} users and {accounts:,} accounts")
    produce(stage.bootstrap, History(users_topic, accounts_topic, stage.sizes.users, accounts).events())


def _burst(stage: Stage, run: Run, query: StreamingQuery, first: int, count: int) -> tuple[Burst, float]:
    """Feeds accounts, each of which is one row; returns the seconds until the last is in the changelog."""
    load = Accounts(run.plan.board.sources["accounts"].topic, stage.sizes.users)
    end = run.end(_TABLE) + count
    producer = Helper("the producer", burst, stage.bootstrap, load, first, count)
    given = producer.result(PATIENCE_S, lambda: check_alive(query))
    found, at_ns = run.await_end(_TABLE, end, PATIENCE_S, query)
    if found != end:
        raise LiveboardError(f"{_TABLE}: expected {count} rows for as many accounts, {end - found} are missing")
    return given, (at_ns - given.started_ns) / 1e9


def _rss(measure: str) -> Result:
    used = sum(process.memory_info().rss for process in driver_processes())
    return Result(measure, used / 1e9, "GB", _MOST_GB)


def _cpu_percent(seconds: int) -> float:
    processes = driver_processes()
    before, started = _cpu_s(processes), time.monotonic()
    time.sleep(seconds)
    return 100 * (_cpu_s(processes) - before) / (time.monotonic() - started)


def _cpu_s(processes: list[psutil.Process]) -> float:
    times = [process.cpu_times() for process in processes]
    return sum(each.user + each.system for each in times)
