"""What the figures are made of: one way through Kafka, the steps of a build, and the driver's memory by kind."""

from __future__ import annotations

import os
import re
import subprocess
import time
from math import ceil

from arrivals import numbered
from backfill import history_of, produce_once
from load import Accounts, pace
from processes import Helper, await_ready, in_process, say, signal_between
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from report import Result
from stage import LEFT, PATIENCE_S, WHOLE, Run, Stage, driver_processes, fresh_topics, sparking

from liveboard.java import find_java
from liveboard.pipeline.parse import parse
from liveboard.pipeline.queries import joined_rows, raw_rows

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


def floor(stage: Stage) -> list[Result]:
    """None of these is a target: they tell where the time and the memory of the others go."""
    return [
        *_hop(stage),
        *in_process("floor, steps", 4 * PATIENCE_S, _steps, stage),
        *in_process("floor, memory", 4 * PATIENCE_S, _memory, stage),
    ]


def _hop(stage: Stage) -> list[Result]:
    """From produce() to a consumer of the same topic, with nothing in between."""
    say("floor: one way through Kafka")
    topic = fresh_topics(stage, LEFT).sources["accounts"].topic
    seconds = max(2, stage.sizes.latency_s // 4)
    count = _RATE * (_UNCOUNTED_S + seconds)
    ready = signal_between()
    consumer = Helper("the consumer", numbered, ready, stage.bootstrap, {topic: 0}, 0, {topic: count}, PATIENCE_S)
    await_ready(ready, "the consumer")
    load = Accounts(topic, stage.sizes.latency_users)
    sent = Helper("the producer", pace, stage.bootstrap, load, 0, count, _RATE).result(PATIENCE_S)
    seen = consumer.result(PATIENCE_S)[topic]
    found = sorted((seen[n] - sent.sent_ns[n]) / 1e6 for n in range(_RATE * _UNCOUNTED_S, count))
    return [
        Result(
            f"floor, one way through Kafka at {_RATE:,}/s, p{percent}",
            found[ceil(len(found) * percent / 100) - 1],
            "ms",
        )
        for percent in (50, 99)
    ]


def _steps(stage: Stage) -> list[Result]:
    """A build's work over the whole history, step by step, into nothing; each has the steps before in it."""
    history = history_of(stage)
    produce_once(stage, history)
    with sparking(stage) as spark:
        run = Run(stage, spark, LEFT)
        topics = ",".join((history.users_topic, history.accounts_topic))
        reader = spark.read.format("kafka").option("kafka.bootstrap.servers", stage.bootstrap)
        records = reader.option("subscribe", topics).option("minPartitions", str(2 * (os.cpu_count() or 1))).load()
        steps = {
            "read": records.select(F.octet_length("value")),
            "read, parsed and checked": parse(records, list(LEFT.sources.values()), reasons=True).drop("value"),
            "all rows of the source tables": raw_rows(records, run.plan),
            "all rows of the left join, without state": joined_rows(records, run.plan, everything=True),
        }
        results = [Result(f"floor, history {name}, warm", _seconds(name, rows), "s") for name, rows in steps.items()]
        run.close()
    return results


def _seconds(name: str, rows: DataFrame) -> float:
    say(f"floor: history {name}")
    for _ in range(_TIMES):
        began = time.monotonic()
        rows.write.format("noop").mode("overwrite").save()
    return time.monotonic() - began


def _memory(stage: Stage) -> list[Result]:
    """The driver after it has built the default board, as Java accounts for it."""
    produce_once(stage, history_of(stage))
    say("floor: the driver's memory")
    with sparking(stage, "-XX:NativeMemoryTracking=summary") as spark:
        run = Run(stage, spark, WHOLE)
        generation = run.build()
        generation.follow()
        time.sleep(stage.sizes.idle_s)
        python, java = driver_processes()
        jcmd = find_java().home / "bin" / "jcmd"
        text = subprocess.run(
            [jcmd, str(java.pid), "VM.native_memory", "summary"], capture_output=True, text=True
        ).stdout
        resident = {"Python": python.memory_info().rss / 1e6, "Java, all of it": java.memory_info().rss / 1e6}
        generation.stop()
        run.close()
    committed = {kind: int(kb) / 1e3 for kind, kb in re.findall(r"-\s+([\w ]+) \(reserved=.*committed=(\d+)KB", text)}
    known = {f"Java, {name}": committed.pop(kind) for kind, name in _KINDS.items() if kind in committed}
    known["Java, the rest of its own"] = sum(committed.values())
    known["RocksDB and other native code, at least"] = max(0.0, resident["Java, all of it"] - sum(known.values()))
    return [Result(f"floor, memory, {name}", mb, "MB") for name, mb in {**resident, **known}.items()]
