"""Reads changelog topics."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from types import TracebackType
from typing import Any, NamedTuple, Self

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, TopicPartition

from liveboard.contract.errors import LiveboardError
from liveboard.kafka import trouble
from liveboard.kafka.admin import Offsets

_BATCH = 10_000
_PATIENCE_S = 60.0
_OFFSET_TAIL = -2000  # librdkafka's RD_KAFKA_OFFSET_TAIL(n) is this less n: the last n records
# Not GROUP_AUTHORIZATION_FAILED: librdkafka looks for the coordinator of the group even where it does not use it.
REFUSED = (
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError._FATAL,
)


class Change(NamedTuple):
    """A record of a changelog: the row's new value, or None for its removal, and when and where Kafka put it."""

    topic: str
    key: bytes
    value: bytes | None
    timestamp_ms: int
    offset: int = -1


def consumer_config(client_config: Mapping[str, str]) -> dict[str, Any]:
    """The settings of a consumer that belongs to no group, leaves nothing behind and says nothing by itself."""
    return {
        **client_config,
        "group.id": "liveboard-reader",  # librdkafka wants one, and does not use it
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "auto.offset.reset": "earliest",
        "fetch.queue.backoff.ms": 5,
        "reconnect.backoff.max.ms": 1_000,
        # A client that has heard from a broker which was just starting that there is no such topic asks again after
        # this time, and by default after five minutes.
        "topic.metadata.refresh.interval.ms": 5_000,
        "log_level": 0,
        "error_cb": lambda _: None,
    }


class ChangelogReader:
    """Reads changelog topics from their beginning, from given offsets or only their last records, and what comes after.

    It belongs to no consumer group and leaves nothing behind in Kafka. A broker that is away or a topic that
    does not exist is waited for; only a refusal is an error.
    """

    def __init__(
        self,
        client_config: Mapping[str, str],
        topics: Iterable[str],
        last: int | None = None,
        start: Offsets | None = None,
    ) -> None:
        usual = OFFSET_BEGINNING if last is None else _OFFSET_TAIL - last
        self._places = [TopicPartition(topic, 0, start[topic]["0"] if start else usual) for topic in topics]
        self._config = consumer_config(client_config)

    def __enter__(self) -> Self:
        self._consumer = Consumer(self._config)
        self._consumer.assign(self._places)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._consumer.close()

    def read(self, timeout_s: float = 0.2) -> list[Change]:
        """What has come, in the order of each topic; empty when nothing comes within the timeout."""
        first = self._consumer.poll(timeout_s)
        if first is None:
            return []
        changes = []
        for message in (first, *self._consumer.consume(_BATCH, 0)):
            if error := message.error():
                _judge(message, error)
            else:
                changes.append(_change(message))
        return changes


def records_between(
    client_config: Mapping[str, str], start: Offsets, end: Offsets, patience_s: float = _PATIENCE_S
) -> Iterator[Message]:
    """All records from the offsets in `start`, or a partition's beginning, up to those in `end`, as Spark reads them.

    A LiveboardError if nothing comes for a while.
    """
    places = [
        TopicPartition(topic, int(partition), start[topic].get(partition, 0))
        for topic, partitions in end.items()
        for partition, offset in partitions.items()
        if offset > start[topic].get(partition, 0)
    ]
    # The end of a partition is told, since there may be no record just before it.
    config = {"isolation.level": "read_uncommitted", "enable.partition.eof": True}
    consumer = Consumer({**consumer_config(client_config), **config})
    left = {(place.topic, place.partition) for place in places}
    try:
        consumer.assign(places)
        deadline = time.monotonic() + patience_s
        while left:
            for message in consumer.consume(_BATCH, 0.05):
                deadline = time.monotonic() + patience_s
                at, error = (str(message.topic()), message.partition() or 0), message.error()
                if error and error.code() != KafkaError._PARTITION_EOF:
                    _judge(message, error)
                elif error or (message.offset() or 0) >= end[at[0]][str(at[1])]:
                    left.discard(at)
                elif at in left:
                    yield message
            if time.monotonic() > deadline:
                raise LiveboardError(
                    f"expected {sorted(end)} to be readable up to {end}, found nothing more for a while"
                )
    finally:
        consumer.close()


def note_position(message: Message, positions: dict[str, int]) -> bool:
    """Notes how far the message's topic has been read, if it is one of those; says whether the message is a record.

    A LiveboardError if Kafka does not let the topic be read.
    """
    topic, offset, error = message.topic() or "", message.offset() or 0, message.error()
    if error and error.code() in REFUSED:
        raise LiveboardError(trouble.permission([topic], "read"))
    if topic in positions:
        if not error:
            positions[topic] = offset + 1
        elif error.code() == KafkaError._PARTITION_EOF:
            positions[topic] = max(positions[topic], offset)
    return error is None


def _change(message: Message) -> Change:
    topic, key = message.topic(), message.key()
    assert topic is not None
    value = message.value()
    return Change(topic, key if key is not None else b"", value, message.timestamp()[1], message.offset() or 0)


def _judge(message: Message, error: KafkaError) -> None:
    if error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
        raise LiveboardError(trouble.permission([str(message.topic())], "read"))
    if error.code() in REFUSED:
        raise LiveboardError(f"cannot read the changelog {message.topic()}: {error.str()}")
