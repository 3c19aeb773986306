"""What following costs once it runs: the most events per second, memory, and idle CPU."""

from __future__ import annotations

import time

from load import Accounts, Burst, History, burst, produce
from processes import Helper, in_process, say
from report import Figure, Target
from run import LEFT, WHOLE, Run, check, driver_processes, following, over, sparking
from stage import PATIENCE_S, Stage, cores, memory_gb

from liveboard.contract.errors import LiveboardError
from liveboard.pipeline.generation import Generation

_MOST_GB = Target(1.5)
_SETTLE_S = 5.0
_TABLE = "final_ui"


def follow_throughput(stage: Stage) -> list[Figure]:
    """A burst of accounts while the left join follows, once it is warm."""
    return in_process("follow_throughput", 4 * PATIENCE_S, _throughput, stage)


def memory(stage: Stage) -> list[Figure]:
    """The driver's memory after the left join's build and while it follows; the CPU of an idle board."""
    return in_process("memory", 6 * PATIENCE_S, _memory, stage)


def _throughput(stage: Stage) -> list[Figure]:
    sizes = stage.sizes
    topics = stage.new_topics()
    _produce_history(stage, topics, accounts=0)
    with sparking(stage) as spark:
        run = Run(stage, spark, over(LEFT, *topics))
        with following(run.build()) as generation:
            say(f"follow_throughput: warming up with {sizes.follow_warm_up:,} accounts")
            _burst(stage, run, generation, 0, sizes.follow_warm_up)
            say(f"follow_throughput: {sizes.accounts:,} accounts as fast as possible")
            given, seconds = _burst(stage, run, generation, sizes.follow_warm_up, sizes.accounts)
        run.close()
    return [
        Figure("follow_throughput, left", "events/s", sizes.accounts / seconds),
        Figure("follow_throughput, the producer alone", "events/s", sizes.accounts / given.seconds),
    ]


def _memory(stage: Stage) -> list[Figure]:
    sizes = stage.sizes
    topics = stage.new_topics()
    _produce_history(stage, topics, sizes.accounts)
    with sparking(stage) as spark:
        say("memory: building the left join")
        run = Run(stage, spark, over(LEFT, *topics))
        generation = run.build()
        figures = [_memory_of("memory, driver after the left build")]
        with following(generation):
            say(f"memory: following {sizes.follow_warm_up:,} accounts")
            _burst(stage, run, generation, 0, sizes.follow_warm_up)
            figures.append(_memory_of("memory, driver while the left join follows"))
        run.close()
        say("memory: building the default board")
        whole = Run(stage, spark, over(WHOLE, *topics))
        with following(whole.build()) as generation:
            time.sleep(_SETTLE_S)
            say(f"memory: the default board idles for {sizes.rest_s} s")
            percent = 100 * cores(driver_processes(), sizes.rest_s)
            check(generation)
            figures += [
                _memory_of("memory, driver while the default board follows"),
                Figure("memory, idle CPU of the default board", "% of a core", percent),
            ]
        whole.close()
    return figures


def _produce_history(stage: Stage, topics: tuple[str, str], accounts: int) -> None:
    say(f"producing {stage.sizes.users:,} users and {accounts:,} accounts")
    produce(stage.bootstrap, History(*topics, stage.sizes.users, accounts).events())


def _burst(stage: Stage, run: Run, generation: Generation, first: int, count: int) -> tuple[Burst, float]:
    """Feeds accounts, each of which is one row; returns the seconds until the last is in the changelog."""
    load = Accounts(run.plan.board.sources["accounts"].topic, stage.sizes.users)
    end = run.end(_TABLE) + count
    producer = Helper("the producer", burst, stage.bootstrap, load, first, count)
    given = producer.result(PATIENCE_S, lambda: check(generation))
    found, at_ns = run.await_end(_TABLE, end, PATIENCE_S, generation)
    if found != end:
        raise LiveboardError(f"{_TABLE}: expected {count} rows for as many accounts, {end - found} are missing")
    return given, (at_ns - given.started_ns) / 1e9


def _memory_of(measure: str) -> Figure:
    return Figure(measure, "GB", memory_gb(driver_processes()), target=_MOST_GB)
