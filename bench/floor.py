"""What the figures are made of: one way through Kafka, the steps of a build, and the driver's memory by kind."""

from __future__ import annotations

import os
import re
import subprocess
import time

from arrivals import numbered
from backfill import produced
from load import Accounts, History, pace
from processes import Helper, await_ready, in_process, say, signal_between
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from report import Figure, percentile
from run import LEFT, WHOLE, Run, driver_processes, following, over, sparking
from stage import PATIENCE_S, Stage

from liveboard.install import java
from liveboard.pipeline.history import flagged, rows
from liveboard.pipeline.parse import parse
from liveboard.pipeline.route import entries

_RATE = 1_000
_UNCOUNTED_S = 2
_TIMES = 3
"""Each step, of which the last counts: Java compiles until then."""
_KINDS = {
    "Java Heap": "heap",
    "Class": "classes",
    "Code": "compiled code",
    "Compiler": "compilers",
    "Thread": "threads",
}


def floor(stage: Stage) -> list[Figure]:
    """None of these is a target: they tell where the time and the memory of the others go."""
    history = produced(stage)
    return [
        *_hop(stage),
        *in_process("floor, steps", 4 * PATIENCE_S, _steps, stage, history),
        *in_process("floor, memory", 4 * PATIENCE_S, _memory, stage, history),
    ]


def _hop(stage: Stage) -> list[Figure]:
    """From produce() to a consumer of the same topic, with nothing in between."""
    say("floor: one way through Kafka")
    _, topic = stage.new_topics()
    seconds = max(2, stage.sizes.seconds // 4)
    count = _RATE * (_UNCOUNTED_S + seconds)
    ready = signal_between()
    consumer = Helper("the consumer", numbered, ready, stage.bootstrap, {topic: 0}, 0, {topic: count}, PATIENCE_S)
    await_ready(ready, "the consumer")
    load = Accounts(topic, stage.sizes.latency_users)
    sent = Helper("the producer", pace, stage.bootstrap, load, 0, count, _RATE).result(PATIENCE_S)
    seen = consumer.result(PATIENCE_S)[topic]
    found = [(seen[n] - sent.sent_ns[n]) / 1e6 for n in range(_RATE * _UNCOUNTED_S, count)]
    return [
        Figure(f"floor, one way through Kafka at {_RATE:,}/s, p{percent}", "ms", percentile(found, percent))
        for percent in (50, 99)
    ]


def _steps(stage: Stage, history: History) -> list[Figure]:
    """A build's work over the whole history, step by step, into nothing; each has the steps before in it."""
    topics = (history.users_topic, history.accounts_topic)
    board = over(LEFT, *topics)
    with sparking(stage) as spark:
        run = Run(stage, spark, board)
        reader = spark.read.format("kafka").option("kafka.bootstrap.servers", stage.bootstrap)
        records = (
            reader.option("subscribe", ",".join(topics)).option("minPartitions", str(2 * (os.cpu_count() or 1))).load()
        )
        found = entries(records, board)
        steps = {
            "read": records.select(F.octet_length("value")),
            "read, parsed and checked": parse(records, list(board.sources.values())).drop("key", "timestamp", "value"),
            "ready to be joined": found,
            "as rows of all tables": rows(flagged(found), run.plan, own_rows=True),
        }
        seconds = {name: warm_seconds(f"history {name}", rows) for name, rows in steps.items()}
        run.close()
    return [Figure(f"floor, history {name}, warm", "s", took) for name, took in seconds.items()]


def warm_seconds(name: str, rows: DataFrame) -> float:
    """How long it takes to make these rows, into nothing, once Java has compiled what it needs."""
    say(f"timing: {name}")
    for _ in range(_TIMES):
        began = time.monotonic()
        rows.write.format("noop").mode("overwrite").save()
    return time.monotonic() - began


def _memory(stage: Stage, history: History) -> list[Figure]:
    """The driver after it has built the default board, as Java accounts for it."""
    say("floor: the driver's memory")
    with sparking(stage, "-XX:NativeMemoryTracking=summary") as spark:
        run = Run(stage, spark, over(WHOLE, history.users_topic, history.accounts_topic))
        with following(run.build()):
            time.sleep(stage.sizes.rest_s)
            python, driver = driver_processes()
            jcmd = java.HOME / "bin" / "jcmd"
            text = subprocess.run(
                [jcmd, str(driver.pid), "VM.native_memory", "summary"], capture_output=True, text=True
            ).stdout
            resident = {"Python": python.memory_info().rss / 1e6, "Java, all of it": driver.memory_info().rss / 1e6}
        run.close()
    committed = {kind: int(kb) / 1e3 for kind, kb in re.findall(r"-\s+([\w ]+) \(reserved=.*committed=(\d+)KB", text)}
    known = {f"Java, {name}": committed.pop(kind) for kind, name in _KINDS.items() if kind in committed}
    known["Java, the rest of its own"] = sum(committed.values())
    known["RocksDB and other native code, at least"] = max(0.0, resident["Java, all of it"] - sum(known.values()))
    return [Figure(f"floor, memory, {name}", "MB", mb) for name, mb in {**resident, **known}.items()]
