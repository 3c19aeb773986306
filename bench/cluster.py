"""The same board on this machine alone and on clusters of more and more workers, one after the other."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp

import psutil
from load import History, Mixed, produce
from player import ARRIVAL_S, Player
from processes import in_process, say
from report import Figure, percentile
from run import WHOLE, Run, driver_processes, following, over, sparking
from stage import PATIENCE_S, Stage, cpu_s
from standalone import Cluster

from liveboard.pipeline import session

_WORKERS = (0, 1, 2, 4)
_CORES = 8
_RATE = 1_000


def cluster(stage: Stage) -> list[Figure]:
    """The default board: its build, cold and warm, then an even load; what all processes take for both."""
    return [figure for workers in _WORKERS for figure in _with(stage, workers)]


def _with(stage: Stage, workers: int) -> list[Figure]:
    name = f"cluster of {workers}" if workers else "this machine alone"
    with _master(stage, workers) as (master, pid):
        timeout_s = 4 * PATIENCE_S + stage.sizes.seconds + 2 * ARRIVAL_S
        return in_process(name, timeout_s, _measure, stage, name, master, pid)


@contextmanager
def _master(stage: Stage, workers: int) -> Iterator[tuple[str, int]]:
    """The address of a Spark, and the process whose children its workers are."""
    if not workers:
        yield "local", 0
        return
    running = Cluster(Path(mkdtemp(prefix="cluster-", dir=stage.directory)), _CORES)
    try:
        for _ in range(workers):
            running.add_worker()
        yield running.address, psutil.Process().pid
    finally:
        running.close()


def _measure(stage: Stage, name: str, master: str, pid: int) -> list[Figure]:
    history, sizes = History(*stage.new_topics(), stage.sizes.users, stage.sizes.accounts), stage.sizes
    say(f"{name}: building twice from {history.users + history.accounts:,} events")
    produce(stage.bootstrap, history.events())
    topics = (history.users_topic, history.accounts_topic)
    figures = []
    with sparking(stage, master=master) as spark:
        if pid:
            partitions = session.derived_shuffle_partitions(session.slots(spark), len(topics))
            spark.conf.set("spark.sql.shuffle.partitions", str(partitions))
        for which in ("cold", "warm"):
            run, began, used = Run(stage, spark, over(WHOLE, *topics)), time.monotonic(), cpu_s(_all(stage, pid))
            run.build()
            figures.append(Figure(f"cluster, {name}, build, {which}", "s", time.monotonic() - began))
            figures.append(Figure(f"cluster, {name}, build, {which}, processor", "s", cpu_s(_all(stage, pid)) - used))
            run.close()
        topics = stage.new_topics()
        produce(stage.bootstrap, History(*topics, sizes.latency_users, 0).events())
        run = Run(stage, spark, over(WHOLE, *topics))
        with following(run.build()) as generation:
            player = Player(stage, run, generation, Mixed(*topics, sizes.latency_users))
            player.play(0, _RATE, sizes.warm_up_s)
            say(f"{name}: {_RATE} events/s for {sizes.seconds} s")
            used, began = cpu_s(_all(stage, pid)), time.monotonic()
            played = player.play(1_000_000, _RATE, sizes.seconds)
            cores = (cpu_s(_all(stage, pid)) - used) / (time.monotonic() - began)
        latencies = played.latencies_ms["final_ui"]
        for label, percent in {"p50": 50.0, "p99": 99.0}.items():
            figures.append(Figure(f"cluster, {name}, final_ui, {label}", "ms", percentile(latencies, percent)))
        figures.append(Figure(f"cluster, {name}, processor of driver and executors", "cores", cores))
        run.close()
    return figures


def _all(stage: Stage, pid: int) -> list[psutil.Process]:
    """The driver, and all of the cluster."""
    family = psutil.Process(pid).children(recursive=True) if pid else []
    java = [each for each in family if each.name() == "java" and each.pid != stage.broker_pid]
    return [*{each.pid: each for each in (*driver_processes(), *java)}.values()]
