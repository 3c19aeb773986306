"""The real thing in the hands of a test: produce to Kafka, expect what the oracle says, kill, restart."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import oracle
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from oracle import Record, Row, Table
from pyspark.sql import SparkSession

from liveboard.contract.board import Board
from liveboard.contract.changelog import decode_row
from liveboard.contract.names import Names
from liveboard.contract.tables import table_columns
from liveboard.kafka.admin import Admin
from liveboard.orchestrator.ending import EndingRows
from liveboard.orchestrator.repairs import Repairs
from liveboard.pipeline.checkpoints import Checkpoints
from liveboard.pipeline.generation import Generation
from liveboard.pipeline.plan import Plan
from liveboard.pipeline.sizing import WITHOUT_CODE

# Nothing takes so long, but other workers and other programs may have the processor.
PATIENCE_S = 240.0
# More of the same heap for what is just in use: plans are large and live shortly. A tenth of the time of tests of rows
# went into copying those that had no room.
ROOMY = {"spark.driver.extraJavaOptions": "-Xms640m -Xmn360m"}
# Spark does not get back what it takes to generate and compile code for a few hundred records: without, it is a quarter
# less. Tests of rows have the code generated, as users have, in some examples. And nobody measures how soon a record is
# answered: a stream that looks for records to send every 10 ms, and not every millisecond, takes a third less at rest.
QUICK_SPARK = {**ROOMY, **WITHOUT_CODE, "spark.shuffle.streaming.networkBufferMaxWaitTimeMs": "10"}
# What users have.
WITH_CODE = {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"}
# Generations of tests that name theirs are below.
_numbers = count(1_000)


class Patience:
    """How long to wait for something. Time in which this process was stopped does not count."""

    _STEP_S = 5.0

    def __init__(self, seconds: float = PATIENCE_S) -> None:
        self._left_s = seconds
        self._asked_s = time.monotonic()

    @property
    def is_over(self) -> bool:
        """To be asked again and again."""
        now_s = time.monotonic()
        self._left_s -= min(now_s - self._asked_s, self._STEP_S)
        self._asked_s = now_s
        return self._left_s <= 0


@dataclass(frozen=True)
class Event:
    """A record to be produced."""

    source: str
    value: bytes | None
    timestamp_ms: int
    partition: int = 0
    key: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()


class Topics:
    """Reads whole topics again and again, each time only what is new.

    In between it asks Kafka for nothing: a broker was seen to spend half of its time on consumers that only waited.
    """

    def __init__(self, bootstrap: str, patience_s: float = PATIENCE_S) -> None:
        self._patience_s = patience_s
        self._config = {
            "bootstrap.servers": bootstrap,
            "group.id": "tests",
            "enable.auto.commit": False,
            "fetch.queue.backoff.ms": 5,
            "fetch.wait.max.ms": 20,
            "log_level": 0,
        }
        self._consumer = Consumer(self._config)
        self._messages: dict[str, list[Any]] = {}
        self._next: dict[tuple[str, int], int] = {}

    def messages(self, topic: str) -> list[Any]:
        """All messages that the topic holds now."""
        if topic not in self._messages:
            self._messages[topic] = []
            metadata = self._consumer.list_topics(topic, timeout=self._patience_s)
            begin = [TopicPartition(topic, partition, 0) for partition in metadata.topics[topic].partitions]
            self._next |= {(topic, place.partition): 0 for place in begin}
            self._consumer.incremental_assign(begin)
            self._consumer.pause(begin)
        partitions = [partition for name, partition in self._next if name == topic]
        ends = {partition: self._end(TopicPartition(topic, partition)) for partition in partitions}
        behind = [TopicPartition(topic, each) for each, end in ends.items() if self._next[topic, each] < end]
        if behind:
            self._consumer.resume(behind)
            self._read_to(topic, ends)
            self._consumer.pause(behind)
        return self._messages[topic]

    def _read_to(self, topic: str, ends: dict[int, int]) -> None:
        patience = Patience(self._patience_s)
        while any(self._next[topic, partition] < end for partition, end in ends.items()):
            assert not patience.is_over, f"{topic} cannot be read to its end"
            for message in self._consumer.consume(10_000, 0.02):
                assert message.error() is None, message.error()
                name, place = str(message.topic()), (str(message.topic()), int(message.partition() or 0))
                self._messages[name].append(message)
                self._next[place] = int(message.offset() or 0) + 1

    def _end(self, place: TopicPartition) -> int:
        patience = Patience(self._patience_s)
        while True:
            try:
                return int(self._consumer.get_watermark_offsets(place, timeout=5)[1])
            except KafkaException:
                # The broker may be away: some tests restart it. A client that has once heard then that there is no such
                # partition was seen to insist on it for minutes.
                assert not patience.is_over, f"the end of {place} cannot be read"
                time.sleep(1)
                self._begin_again()

    def _begin_again(self) -> None:
        """Reads on with another client."""
        self._consumer.close()
        self._consumer = Consumer(self._config)
        self._consumer.assign([TopicPartition(*place, offset) for place, offset in self._next.items()])

    def close(self) -> None:
        """Ends the connection."""
        self._consumer.close()


@dataclass
class Bench:
    """One board on fresh topics of one broker, with its changelogs."""

    bootstrap: str
    board: Board
    generation: str = field(default_factory=lambda: f"g{next(_numbers)}")
    read_avro: oracle.Reader | None = None
    patience_s: float = PATIENCE_S
    """For reading topics."""

    def __post_init__(self) -> None:
        self.admin = Admin({"bootstrap.servers": self.bootstrap})
        self.topics = Topics(self.bootstrap, self.patience_s)
        self._producer = Producer({"bootstrap.servers": self.bootstrap, "linger.ms": 5, "log_level": 0})
        self.names = Names(self.board.name)
        self.columns = table_columns(self.board)
        # Each table as of so many messages: who waits looks at it again and again.
        self._read: dict[str, tuple[Table, int]] = {}

    def close(self) -> None:
        """Ends the connections."""
        self.topics.close()

    def create_topics(self, partitions: int = 1) -> None:
        """Creates the sources' topics and the changelogs."""
        self.admin.create((source.topic for source in self.board.sources.values()), partitions)
        self.admin.create_generation(self.names, self.generation, self.columns)

    def plan(self, start_from: str = "earliest") -> Plan:
        """The board read from its topics' beginning or end."""
        topics = self.admin.require(source.topic for source in self.board.sources.values())
        offsets = self.admin.offsets(topics, start_from)
        return Plan(self.names, self.generation, self.board, offsets, {"bootstrap.servers": self.bootstrap})

    def produce(self, events: Iterable[Event]) -> None:
        """Writes the events and waits until Kafka has them."""
        for event in events:
            self._produce(event)
        assert self._producer.flush(PATIENCE_S) == 0

    def _produce(self, event: Event) -> None:
        topic = self.board.sources[event.source].topic
        while True:
            try:
                return self._producer.produce(
                    topic,
                    event.value,
                    event.key,
                    timestamp=event.timestamp_ms,
                    partition=event.partition,
                    headers=list(event.headers),
                )
            except BufferError:
                self._producer.poll(0.1)

    def let_pass(self, records: int) -> None:
        """Waits until that many more records are in the sources' topics, whoever produces them."""
        topics = [source.topic for source in self.board.sources.values()]
        before = sum(len(self.topics.messages(topic)) for topic in topics)
        while sum(len(self.topics.messages(topic)) for topic in topics) < before + records:
            time.sleep(0.05)

    def expected(self) -> dict[str, Table]:
        """What the tables must be, by the oracle, for what the topics hold now."""
        records = [
            Record(
                source.topic, m.partition(), m.offset(), m.timestamp()[1], m.value(), m.key(), tuple(m.headers() or ())
            )
            for source in self.board.sources.values()
            for m in self.topics.messages(source.topic)
        ]
        return oracle.tables(self.board, records, self.read_avro)

    def table(self, name: str) -> Table:
        """What the changelog says that the table is."""
        messages = self.topics.messages(self.names.changelog(self.generation, name))
        table, seen = self._read.get(name, ({}, 0))
        for message in messages[seen:]:
            if message.value():
                table[message.key().decode()] = decode_row(message.value(), self.columns[name])
            else:
                table.pop(message.key().decode(), None)
        self._read[name] = (table, len(messages))
        return dict(table)

    def expect_oracle(self) -> dict[str, Table]:
        """Waits until every table is what the oracle says."""
        expected = self.expected()
        self.expect(expected)
        return expected

    def expect(self, expected: dict[str, Table]) -> None:
        """Waits until these tables are as expected."""
        deadline = time.monotonic() + PATIENCE_S
        for name, table in expected.items():
            while difference(name, self.table(name), table):
                assert time.monotonic() < deadline, difference(name, self.table(name), table)
                time.sleep(0.1)

    def expect_keys(self, table: str, keys: set[str]) -> None:
        """Waits until the table has rows of just these keys; there may be millions."""
        topic = self.names.changelog(self.generation, table)
        until(lambda: self.admin.offsets({topic: 1}, "latest")[topic]["0"] >= len(keys), f"rows of {table}")
        until(lambda: {message.key().decode() for message in self.topics.messages(topic)} == keys, f"rows of {table}")

    def expect_rows(self, table: str, rows: int) -> None:
        """Waits until the table has that many rows."""
        deadline = time.monotonic() + PATIENCE_S
        while (found := len(self.table(table))) != rows:
            assert time.monotonic() < deadline, f"expected {rows} rows in {table}, found {found}"
            time.sleep(0.1)


def until(condition: Callable[[], object], waiting_for: str | Callable[[], str] = "it") -> None:
    """Waits for the condition; what it has waited for in vain may be put into words then."""
    patience = Patience()
    while not condition():
        if patience.is_over:
            found = waiting_for if isinstance(waiting_for, str) else waiting_for()
            raise AssertionError(f"waited in vain for {found}")
        time.sleep(0.05)


@contextmanager
def emptied(bootstrap: str) -> Iterator[None]:
    """A broker that others use too without their topics, and afterwards without those of this test."""
    admin = Admin({"bootstrap.servers": bootstrap})
    _empty(admin)
    try:
        yield
    finally:
        _empty(admin)


def _empty(admin: Admin) -> None:
    topics = [topic for topic in admin.partitions() if not topic.startswith("__")]
    admin.delete(topics)
    # The broker that answers may hear of it a moment later.
    until(lambda: admin.partitions().keys().isdisjoint(topics), "the end of the topics")


def difference(name: str, found: Table, expected: Table) -> str:
    """The first rows in which the tables differ, in words; empty when they are equal."""
    if name == "rejects_ui":
        found = {key: _reason_begun(row, expected.get(key)) for key, row in found.items()}
    wrong = [key for key in found.keys() | expected.keys() if found.get(key) != expected.get(key)]
    rows = "\n".join(f"  {key}: expected {expected.get(key)}, found {found.get(key)}" for key in sorted(wrong)[:5])
    return f"{len(wrong)} rows of {name} differ:\n{rows}" if wrong else ""


def _reason_begun(row: Row, expected: Row | None) -> Row:
    """The oracle knows how a reason begins (field, what was expected), not how it tells what was found."""
    reason = str(row[3])
    begun = expected is not None and reason.startswith(f"{expected[3]}, found ")
    return (*row[:3], expected[3], *row[4:]) if expected and begun else row


@contextmanager
def code_generated(spark: SparkSession, is_wanted: bool) -> Iterator[None]:
    """Spark with the code that it generates for a query, as users have it, or without, as most tests have it."""
    for name, value in (WITH_CODE if is_wanted else WITHOUT_CODE).items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, value in WITHOUT_CODE.items():
            spark.conf.set(name, value)


def made(spark: SparkSession, plan: Callable[[], Plan], checkpoint: Path) -> Generation:
    """A generation that has its checkpoint in this directory."""
    return Generation(spark, plan, checkpoint.name, Checkpoints(spark, checkpoint.parent.as_uri()), "5 minutes")


@contextmanager
def followed(spark: SparkSession, bench: Bench, checkpoint: Path, start_from: str = "earliest") -> Iterator[Generation]:
    """The bench's generation, built from what its topics hold, following them, and repaired when it asks for it."""
    generation = made(spark, lambda: bench.plan(start_from), checkpoint)
    try:
        generation.build()
        until(generation.is_built)
        generation.follow()
        with repaired(generation, bench):
            yield generation
        assert not (why := generation.failure()), why
    finally:
        generation.stop()


@contextmanager
def repaired(generation: Generation, bench: Bench) -> Iterator[None]:
    """Repairs and removals on a thread of their own, as the orchestrator would have them made."""
    repairs = Repairs(generation, bench.plan(), {"bootstrap.servers": bench.bootstrap}, bench.admin)
    ending = EndingRows(bench.plan(), {"bootstrap.servers": bench.bootstrap})
    stopping = threading.Event()

    def run() -> None:
        # A repair takes Spark seconds, however many keys have asked for it by then.
        while not stopping.wait(0.5):
            repairs.advance()
            ending.advance()

    with closing(repairs), closing(ending), ThreadPoolExecutor(1) as thread:
        running = thread.submit(run)
        try:
            yield
        finally:
            stopping.set()
        running.result()
