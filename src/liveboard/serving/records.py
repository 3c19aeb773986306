"""Reads single records of Kafka by position or by time, and the last ones of a topic: a few, and not for long."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

import orjson
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from liveboard.contract.errors import LiveboardError
from liveboard.contract.frames import Code, FrameError
from liveboard.kafka import trouble
from liveboard.kafka.reader import consumer_config

_WITHIN_S = 5.0
_THREADS = 4
_WAITING = 32
_OF_ONE_KEY = 8
# Of each partition: records of one time are beside each other, or nearly so where producers set the time.
_SEARCHED = 1_000

T = TypeVar("T")


class Position(NamedTuple):
    """Where a record is."""

    topic: str
    partition: int
    offset: int


class Sought(NamedTuple):
    """The last record of a topic that has this time and these values, as texts, somewhere in its key or its value.

    Those that have them in fields of these names come first.
    """

    topic: str
    timestamp_ms: int
    values: tuple[str, ...]
    names: tuple[str, ...] = ()


class FoundRecord(NamedTuple):
    """A record as Kafka has it, or why it is not there."""

    position: Position | None
    problem: str = ""
    timestamp_ms: int | None = None
    key: bytes | None = None
    value: bytes | None = None


class Lookups:
    """Runs what waits for Kafka beside the event loop, a few at a time; whoever asks too much is told so."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(_THREADS, "lookups")
        self._asked: Counter[str] = Counter()

    async def run(self, who: str, work: Callable[[], T]) -> T:
        """The result of the work; `who` is the name of the key that asks."""
        if self._asked[who] >= _OF_ONE_KEY:
            raise FrameError(Code.TOO_MANY, f"expected up to {_OF_ONE_KEY} lookups at a time, found one more")
        if self._asked.total() >= _WAITING:
            raise FrameError(Code.OVERLOADED, "expected fewer lookups at a time, found too many; try again later")
        self._asked[who] += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, work)
        finally:
            self._asked[who] -= 1
            if not self._asked[who]:
                del self._asked[who]

    def stop(self) -> None:
        """Lets the threads go."""
        self._pool.shutdown(wait=False, cancel_futures=True)


def read(client_config: Mapping[str, str], places: Sequence[Position | Sought]) -> list[FoundRecord]:
    """The records at these places, in their order; takes a few seconds at most."""
    deadline = time.monotonic() + _WITHIN_S
    with _consumer(client_config) as consumer:
        return [
            _read_one(consumer, place, deadline) if isinstance(place, Position) else _find(consumer, place, deadline)
            for place in places
        ]


def last(client_config: Mapping[str, str], topic: str, count: int) -> tuple[int, list[Message]]:
    """How many records a topic has, and up to `count` of its last ones; a LiveboardError if it cannot be read."""
    deadline = time.monotonic() + _WITHIN_S
    with _consumer(client_config) as consumer:
        try:
            described = consumer.list_topics(topic, timeout=_WITHIN_S).topics[topic]
            if described.error is not None:
                raise KafkaException(described.error)
            ends = {
                partition: consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=_left(deadline))
                for partition in described.partitions
            }
        except KafkaException as error:
            raise _failure(client_config, topic, error.args[0]) from None
        share = -(-count // max(1, len(ends)))
        places = [TopicPartition(topic, at, max(low, high - share)) for at, (low, high) in ends.items() if high > low]
        consumer.assign(places)
        left, found = {place.partition for place in places}, []
        while left and time.monotonic() < deadline:
            for message in consumer.consume(count, 0.1):
                if said := message.error():
                    if said.code() != KafkaError._PARTITION_EOF:
                        raise _failure(client_config, topic, said)
                    left.discard(message.partition() or 0)
                else:
                    found.append(message)
        return sum(high - low for low, high in ends.values()), found


def _read_one(consumer: Consumer, position: Position, deadline: float) -> FoundRecord:
    place = TopicPartition(*position)
    try:
        low, high = consumer.get_watermark_offsets(place, timeout=_left(deadline))
        if position.offset < low:
            return FoundRecord(position, f"Kafka has deleted this record: the partition begins at offset {low} now")
        if position.offset >= high:
            return FoundRecord(position, f"there is no such record: the partition ends at offset {high}")
        consumer.assign([place])
        while time.monotonic() < deadline:
            message = consumer.poll(0.1)
            if message is None:
                continue
            error = message.error()
            if error is not None and error.code() != KafkaError._PARTITION_EOF:
                return FoundRecord(position, f"the record cannot be read: {error.str()}")
            if error is not None or (message.offset() or 0) > position.offset:
                return FoundRecord(position, "Kafka has deleted this record: the topic is compacted")
            if message.offset() == position.offset:
                return FoundRecord(position, "", message.timestamp()[1], message.key(), message.value())
    except KafkaException as error:
        return FoundRecord(position, f"the record cannot be read: {error.args[0].str()}")
    return FoundRecord(position, f"expected an answer from Kafka within {_WITHIN_S:.0f} s, found none")


def _find(consumer: Consumer, sought: Sought, deadline: float) -> FoundRecord:
    try:
        topic = consumer.list_topics(sought.topic, timeout=_left(deadline)).topics[sought.topic]
        times = [TopicPartition(sought.topic, partition, sought.timestamp_ms) for partition in topic.partitions]
        found = consumer.offsets_for_times(times, timeout=_left(deadline))
        of_this_time = list(_of_time(consumer, [place for place in found if place.offset >= 0], sought, deadline))
    except KafkaException as error:
        return FoundRecord(None, f"the record cannot be read: {error.args[0].str()}")
    # Some formats have no texts to search for, as numbers in Avro: then it is the only record of this time, if any.
    named = {*zip(sought.names, sought.values, strict=False)}
    of_the_key = [message for message in of_this_time if named and _has(message, named, with_names=True)]
    of_the_key = of_the_key or [message for message in of_this_time if _has(message, {*sought.values}, False)]
    if not of_the_key and len(of_this_time) != 1:
        why = f"{len(of_this_time)} have its time" if of_this_time else "Kafka may have deleted it"
        return FoundRecord(None, f"the newest record of this key was not found: {why}")
    last = max(of_the_key or of_this_time, key=lambda message: message.offset() or 0)
    position = Position(sought.topic, last.partition() or 0, last.offset() or 0)
    return FoundRecord(position, "", last.timestamp()[1], last.key(), last.value())


def _of_time(consumer: Consumer, places: list[TopicPartition], sought: Sought, deadline: float) -> Iterator[Message]:
    """The records with a value that have the time that is sought, of the first ones from these places on."""
    consumer.assign(places)
    left = {place.partition: _SEARCHED for place in places}
    while left and time.monotonic() < deadline:
        for message in consumer.consume(_SEARCHED, 0.05):
            partition = message.partition() or 0
            if error := message.error():
                if error.code() != KafkaError._PARTITION_EOF:
                    raise KafkaException(error)
                left.pop(partition, None)
            elif left.get(partition):
                left[partition] -= 1
                if message.timestamp()[1] == sought.timestamp_ms and message.value() is not None:
                    yield message
        left = {partition: count for partition, count in left.items() if count}


def _has(message: Message, wanted: set[Any], with_names: bool) -> bool:
    for raw in (message.key(), message.value()):
        found = fields(raw) if raw else []
        if found and wanted <= {field if with_names else field[1] for field in found}:
            return True
    return False


def fields(raw: bytes) -> list[tuple[str, str]]:
    """All values in a JSON document, as texts, each with the name of its field; of anything else, itself."""
    try:
        return list(_leaves("", orjson.loads(raw)))
    except orjson.JSONDecodeError:
        return [("", raw.decode(errors="replace"))]


def _leaves(name: str, document: Any) -> Iterator[tuple[str, str]]:
    if isinstance(document, dict):
        for field, value in document.items():
            yield from _leaves(field, value)
    elif isinstance(document, list):
        for value in document:
            yield from _leaves(name, value)
    elif document is not None:
        yield name, str(document)


@contextlib.contextmanager
def _consumer(client_config: Mapping[str, str]) -> Iterator[Consumer]:
    consumer = Consumer({**consumer_config(client_config), "enable.partition.eof": True, "fetch.wait.max.ms": 50})
    try:
        yield consumer
    finally:
        consumer.close()


def _left(deadline: float) -> float:
    return max(0.1, deadline - time.monotonic())


def _failure(client_config: Mapping[str, str], topic: str, error: KafkaError) -> LiveboardError:
    if error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
        return LiveboardError(trouble.permission([topic], "read"))
    if error.code() in (KafkaError._TIMED_OUT, KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN):
        return trouble.unavailable(client_config, error.str())
    return LiveboardError(f'expected a topic "{topic}" that can be read, found: {error.str()}')
