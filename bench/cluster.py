"""The same board on this machine alone, on clusters of more and more workers, and on YARN, one after the other."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import mkdtemp

import psutil
from hadoop import hdfs, yarn
from load import History, Mixed, produce
from player import ARRIVAL_S, Player
from processes import in_process, say
from report import Figure, percentile
from run import WHOLE, Run, driver_processes, following, over, sparking
from stage import PATIENCE_S, Stage, cpu_s
from standalone import Cluster

from liveboard.config import StorageSettings
from liveboard.pipeline import session, stores

_CORES = 8
_RATE = 1_000


@dataclass(frozen=True)
class _Spark:
    """Where a board runs."""

    name: str
    master: str = "local"
    conf: Mapping[str, str] = field(default_factory=dict)
    checkpoints: str = ""
    pid: int = 0
    """The process whose children the executors are; 0 where there are none."""


def cluster(stage: Stage) -> list[Figure]:
    """The default board: its build, cold and warm, then an even load; what all processes take for both."""
    sparks: list[AbstractContextManager[_Spark]] = [nullcontext(_Spark("this machine alone"))]
    sparks += [_standalone(stage, workers) for workers in stage.sizes.workers]
    return [figure for spark in sparks for figure in _with(stage, spark)]


def on_yarn(stage: Stage) -> list[Figure]:
    """The same on YARN."""
    return _with(stage, _on_yarn(stage))


def _with(stage: Stage, running: AbstractContextManager[_Spark]) -> list[Figure]:
    with running as spark:
        timeout_s = 4 * PATIENCE_S + stage.sizes.seconds + 2 * ARRIVAL_S
        return in_process(spark.name, timeout_s, _measure, stage, spark)


@contextmanager
def _standalone(stage: Stage, workers: int) -> Iterator[_Spark]:
    running = Cluster(Path(mkdtemp(prefix="cluster-", dir=stage.directory)), _CORES)
    try:
        for _ in range(workers):
            running.add_worker()
        yield _Spark(f"cluster of {workers}", running.address, pid=os.getpid())
    finally:
        running.close()


@contextmanager
def _on_yarn(stage: Stage) -> Iterator[_Spark]:
    """Two executors, and checkpoints in HDFS."""
    directory = Path(mkdtemp(prefix="yarn-", dir=stage.directory))
    with hdfs(directory) as files, yarn(directory, files) as conf:
        checkpoints = f"{files}/boards"
        executors = {"spark.executor.instances": "2", "spark.executor.cores": str(_CORES)}
        conf = {**conf, **executors, **stores.conf(StorageSettings(checkpoints=checkpoints))}
        yield _Spark("YARN and HDFS", "yarn", conf, checkpoints, os.getpid())


def _measure(stage: Stage, on: _Spark) -> list[Figure]:
    name, pid = on.name, on.pid
    history, sizes = History(*stage.new_topics(), stage.sizes.users, stage.sizes.accounts), stage.sizes
    say(f"{name}: building twice from {history.users + history.accounts:,} events")
    produce(stage.bootstrap, history.events())
    topics = (history.users_topic, history.accounts_topic)
    figures = []
    with sparking(stage, master=on.master, conf=on.conf) as spark:
        if pid:
            partitions = session.derived_shuffle_partitions(session.slots(spark), len(topics))
            spark.conf.set("spark.sql.shuffle.partitions", str(partitions))
        for which in ("cold", "warm"):
            run = Run(stage, spark, over(WHOLE, *topics), on.checkpoints)
            began, used = time.monotonic(), cpu_s(_all(stage, pid))
            run.build()
            figures.append(Figure(f"cluster, {name}, build, {which}", "s", time.monotonic() - began))
            figures.append(Figure(f"cluster, {name}, build, {which}, processor", "s", cpu_s(_all(stage, pid)) - used))
            run.close()
        topics = stage.new_topics()
        produce(stage.bootstrap, History(*topics, sizes.latency_users, 0).events())
        run = Run(stage, spark, over(WHOLE, *topics), on.checkpoints)
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
