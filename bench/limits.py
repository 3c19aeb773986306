"""How far it goes: one thing at a time made very large, and what it costs then (docs/limits.md)."""

from __future__ import annotations

import json
import statistics
import time
from dataclasses import dataclass

import psutil
from confluent_kafka import Producer
from keys import Shape, at_rates
from load import Event, burst, produce, user_json
from processes import Helper, in_process, repeating, say, signal_between
from report import Figure
from run import LEFT, Run, driver_processes, following, over, sparking
from serving import TABLE, Served, fill, latency, watch
from stage import PATIENCE_S, Stage, Suite, cores, memory_gb

from liveboard.config import LimitSettings
from liveboard.contract.board import LARGEST_VALUE_BYTES, Board, Source
from liveboard.contract.errors import LiveboardError
from liveboard.contract.names import REJECTS_TABLE

_HOT_RATE = 200
_CHANGED_ROWS = 10
_EVERY_S = 0.05
_ASKED = 7
# With its 640 MB, Spark does not hold even a few records of 8 MB at once.
_ROOMY = {"spark.driver.memory": "2g"}
_MESSAGE_BYTES = 32_000_000
_PATIENCE_S = 6 * PATIENCE_S


def rows(stage: Stage) -> list[Figure]:
    """One server with a very long table."""
    fill(stage, stage.sizes.limit_rows)
    return in_process("a server", _PATIENCE_S, _rows, stage)


def _rows(stage: Stage) -> list[Figure]:
    count, process = stage.sizes.limit_rows, psutil.Process()
    name = f"{count:,} rows of 7 columns"
    begun, before = time.perf_counter(), process.memory_info().rss
    with Served(stage, count) as served:
        served.await_rows()
        figures = [
            Figure(f"{name}, server's start to served", "s", time.perf_counter() - begun),
            Figure(f"{name}, server's memory", "GB", (process.memory_info().rss - before) / 1e9),
        ]
        places = (served.get({"offset": str(count // 2 + number), "size": "300"}) for number in range(_ASKED))
        figures.append(Figure(f"{name}, window of 300 in natural order", "ms", statistics.median(places) * 1000))
        figures += [Figure(f"{each.measure}, {count:,} rows", each.unit, each.liveboard) for each in latency(served)]
        figures.append(Figure(f"{name}, the first sort", "s", served.make_mirror()))
        sorts = [served.get({"size": str(300 + number), "sort": '[["balance","desc"]]'}) for number in range(_ASKED)]
        searches = [served.get({"size": str(300 + number), "search": "77 lovelace"}) for number in range(_ASKED)]
        return [
            *figures,
            Figure(f"{name}, sort by a number, median", "ms", statistics.median(sorts) * 1000),
            Figure(f"{name}, search, median", "ms", statistics.median(searches) * 1000),
            Figure(f"{name}, server's memory with its mirror", "GB", (process.memory_info().rss - before) / 1e9),
        ]


def viewers(stage: Stage) -> list[Figure]:
    """One server with very many viewers of one window that changes 20 times a second."""
    fill(stage, stage.sizes.rows // 10)
    return in_process("a server", _PATIENCE_S, _viewers, stage)


def _viewers(stage: Stage) -> list[Figure]:
    count, seconds = stage.sizes.limit_viewers, stage.sizes.seconds
    limits = LimitSettings(viewers=2 * count, viewers_per_address=2 * count)
    with Served(stage, stage.sizes.rows // 10, limits=limits) as served:
        served.await_rows()
        process = psutil.Process()
        before = process.memory_info().rss
        ready, counting = signal_between(), signal_between()
        say(f"viewers: connecting {count:,}")
        crowd = Helper("the viewers", watch, ready, counting, [served.port], count, seconds)
        begun = time.perf_counter()
        crowd.await_ready(ready, PATIENCE_S)
        connected = time.perf_counter() - begun
        used = process.memory_info().rss - before

        def change(number: int) -> None:
            for row in range(_CHANGED_ROWS):
                served.change(row, number, f"|{number}")

        with repeating(_EVERY_S, change):
            counting.set()
            busy = cores([process], seconds)
            received = crowd.result(PATIENCE_S)
    name = f"{count:,} viewers of one window"
    return [
        Figure(f"{name}, until all are there", "s", connected),
        Figure(f"{name}, memory of one", "kB", used / count / 1e3),
        Figure(f"{name}, server and producer", "cores", busy),
        Figure(f"{name}, frames to each", "frames/s", received / count),
    ]


def tables(stage: Stage) -> list[Figure]:
    """A board with very many sources: one build, one query, and one server that shows all of them."""
    counts = stage.sizes.limit_tables
    return [figure for count in counts for figure in in_process("many tables", _PATIENCE_S, _tables, stage, count)]


def _tables(stage: Stage, count: int) -> list[Figure]:
    of_each, number = stage.sizes.limit_table_rows, time.time_ns()
    names = [f"t{place}" for place in range(count)]
    sources = {
        name: Source(name=name, topic=f"{name}-{number}", table=f"{name}_ui", schema="userId string, age bigint")
        for name in names
    }
    stage.admin.create(source.topic for source in sources.values())
    say(f"tables: {of_each:,} records for each of {count}")
    value = b'{"userId":"u7","age":7}'
    produce(stage.bootstrap, (Event(s.topic, value) for _ in range(of_each) for s in sources.values()))
    board = Board(sources=sources)
    with sparking(stage, board=board) as spark:
        run = Run(stage, spark, board)
        begun = time.perf_counter()
        generation = run.build()
        built = time.perf_counter() - begun
        run.expect_rows({f"{names[-1]}_ui": of_each})
        with following(generation):
            begun = time.perf_counter()
            _answer(stage, run, generation, f"{names[-1]}_ui", Event(sources[names[-1]].topic, value))
            first = time.perf_counter() - begun
            times = []
            for name in names[:: max(1, count // 20)]:
                begun = time.perf_counter()
                _answer(stage, run, generation, f"{name}_ui", Event(sources[name].topic, value))
                times.append(time.perf_counter() - begun)
            used = memory_gb(driver_processes())
        run.close()
    name = f"{count} tables"
    return [
        Figure(f"{name}, build from {count * of_each:,} records", "s", built),
        Figure(f"{name}, from the query's start to its first row", "s", first),
        Figure(f"{name}, produce to changelog, one at a time, median", "ms", statistics.median(times) * 1000),
        Figure(f"{name}, driver's memory", "GB", used),
    ]


def _answer(stage: Stage, run: Run, generation: object, table: str, event: Event) -> None:
    """Returns when a record has its row."""
    end = run.end(table) + 1
    produce(stage.bootstrap, [event])
    found, _ = run.await_end(table, end, PATIENCE_S, generation)  # type: ignore[arg-type]
    if found < end:
        raise LiveboardError(f"{table}: no row within {PATIENCE_S:.0f} s of a record")


def columns(stage: Stage) -> list[Figure]:
    """A source with very many columns."""
    return in_process("many columns", _PATIENCE_S, _columns, stage)


def _columns(stage: Stage) -> list[Figure]:
    count, records = stage.sizes.limit_columns, stage.sizes.limit_wide_records
    names = [f"c{place}" for place in range(count)]
    kinds = ["string" if place % 2 else "double" for place in range(count)]
    schema = ", ".join(f"{name} {kind}" for name, kind in zip(names, kinds, strict=True))
    source = Source(name="wide", topic=f"wide-{time.time_ns()}", table="wide_ui", schema=schema)
    stage.admin.create([source.topic])
    value = json.dumps({name: f"v{at}" if at % 2 else at / 4 for at, name in enumerate(names)}).encode()
    produce(stage.bootstrap, (Event(source.topic, value) for _ in range(records)))
    board = Board(sources={"wide": source})
    with sparking(stage, board=board) as spark:
        run = Run(stage, spark, board)
        begun = time.perf_counter()
        generation = run.build()
        built = time.perf_counter() - begun
        run.expect_rows({"wide_ui": records})
        with following(generation):
            _answer(stage, run, generation, "wide_ui", Event(source.topic, value))
            end = run.end("wide_ui") + records
            begun = time.perf_counter()
            produce(stage.bootstrap, (Event(source.topic, value) for _ in range(records)))
            found, _ = run.await_end("wide_ui", end, PATIENCE_S, generation)
            if found < end:
                raise LiveboardError(f"wide_ui: {end - found} rows of {records} are missing")
            followed = time.perf_counter() - begun
        run.close()
    name = f"{count:,} columns"
    return [
        Figure(f"{name}, a record", "kB", len(value) / 1e3),
        Figure(f"{name}, build", "records/s", records / built),
        Figure(f"{name}, following", "records/s", records / followed),
    ]


def records(stage: Stage) -> list[Figure]:
    """Very large records, in the pipeline."""
    return in_process("large records", _PATIENCE_S, _records, stage)


def _records(stage: Stage) -> list[Figure]:
    size, count = stage.sizes.limit_record_bytes, stage.sizes.limit_records
    source = Source(
        name="large",
        topic=f"large-{time.time_ns()}",
        table="large_ui",
        schema="userId string, text string",
        max_value_bytes=LARGEST_VALUE_BYTES,
    )
    stage.admin.create([source.topic])
    value, too_large = (
        json.dumps({"userId": "u7", "text": "x" * (each - 40)}).encode() for each in (size, stage.sizes.limit_too_large)
    )
    producer = Producer({**stage.client_config, "message.max.bytes": _MESSAGE_BYTES, "log_level": 0})

    def send(value: bytes, times: int) -> None:
        for _ in range(times):
            producer.produce(source.topic, value, partition=0)
            if producer.flush(PATIENCE_S):
                raise LiveboardError("Kafka did not take a large record")

    send(value, count)
    with sparking(stage, conf=_ROOMY) as spark:
        run = Run(stage, spark, Board(sources={"large": source}))
        begun = time.perf_counter()
        generation = run.build()
        built = time.perf_counter() - begun
        run.expect_rows({"large_ui": count})
        with following(generation):
            end = run.end("large_ui") + 1
            send(value, 1)
            run.await_end("large_ui", end, PATIENCE_S, generation)
            begun = time.perf_counter()
            send(value, count)
            found, _ = run.await_end("large_ui", end + count, PATIENCE_S, generation)
            if found < end + count:
                raise LiveboardError(f"large_ui: {end + count - found} rows of {count} are missing")
            followed = time.perf_counter() - begun
            begun = time.perf_counter()
            send(too_large, count)
            found, _ = run.await_end(REJECTS_TABLE, count, PATIENCE_S, generation)
            if found < count:
                raise LiveboardError(f"{REJECTS_TABLE}: {count - found} rows of {count} are missing")
            rejected = time.perf_counter() - begun
            used = memory_gb(driver_processes())
        run.close()
    name = f"records of {len(value) / 1e6:.0f} MB"
    return [
        Figure(f"{name}, build", "MB/s", count * len(value) / built / 1e6),
        Figure(f"{name}, following", "MB/s", count * len(value) / followed / 1e6),
        Figure(
            f"records of {len(too_large) / 1e6:.0f} MB, rejected while following",
            "MB/s",
            count * len(too_large) / rejected / 1e6,
        ),
        Figure(f"{name}, driver's memory", "GB", used),
    ]


@dataclass(frozen=True)
class _NewKeys:
    """Users, each under a key that nobody has had before."""

    topic: str

    def event(self, number: int) -> Event:
        return Event(self.topic, user_json(f"k{number}", "Ada"))


def keys(stage: Stage) -> list[Figure]:
    """As many new keys as fast as they come, while the left join follows."""
    return in_process("new keys", _PATIENCE_S, _keys, stage)


def _keys(stage: Stage) -> list[Figure]:
    count, warm_up = stage.sizes.limit_keys, stage.sizes.follow_warm_up
    topics = stage.new_topics()
    produce(stage.bootstrap, [Event(topics[0], user_json("first", "Ada"))])
    with sparking(stage) as spark:
        run = Run(stage, spark, over(LEFT, *topics))
        with following(run.build()) as generation:
            _answer(stage, run, generation, TABLE, Event(topics[0], user_json("second", "Ada")))
            rates = []
            for first, many in ((0, warm_up), (warm_up, count)):
                end = run.end(TABLE) + many
                producer = Helper("the producer", burst, stage.bootstrap, _NewKeys(topics[0]), first, many)
                given = producer.result(PATIENCE_S)
                found, at_ns = run.await_end(TABLE, end, PATIENCE_S, generation)
                if found < end:
                    raise LiveboardError(f"{TABLE}: {end - found} rows of {many} new keys are missing")
                rates.append(many / ((at_ns - given.started_ns) / 1e9))
            used = memory_gb(driver_processes())
        run.close()
    return [
        Figure(f"{count:,} new keys after {warm_up:,}, following", "keys/s", rates[-1]),
        Figure(f"{count:,} new keys after {warm_up:,}, driver's memory", "GB", used),
    ]


def hot_key(stage: Stage) -> list[Figure]:
    """One key with a very long history: its build, then events of it at an even rate."""
    return in_process("a hot key", _PATIENCE_S, _hot_key, stage)


def _hot_key(stage: Stage) -> list[Figure]:
    count = stage.sizes.limit_hot_records
    with sparking(stage) as spark:
        say(f"hot_key: one key with {count:,} records")
        found = at_rates(stage, spark, "left", Shape(1, count), (_HOT_RATE,), stage.sizes.keys_s)
        used = memory_gb(driver_processes())
    name = f"a key with {count:,} records"
    return [
        Figure(f"{name}, build of the left join", "s", found.build_s),
        *[Figure(f"{name}, {label} at {rate}/s", "ms", value) for (rate, label), value in found.latencies_ms.items()],
        Figure(f"{name}, driver's memory", "GB", used),
    ]


SUITE = Suite(
    title="the limits of liveboard",
    file="limits.json",
    measures={
        "columns": columns,
        "tables": tables,
        "records": records,
        "keys": keys,
        "viewers": viewers,
        "rows": rows,
        "hot_key": hot_key,
    },
    seconds=10,
)
