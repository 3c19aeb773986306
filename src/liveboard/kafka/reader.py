"""Reads changelog topics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any, NamedTuple, Self

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, TopicPartition

from liveboard.errors import LiveboardError
from liveboard.kafka import trouble

_BATCH = 10_000
_OFFSET_TAIL = -2000  # librdkafka's RD_KAFKA_OFFSET_TAIL(n) is this less n: the last n records
# Not GROUP_AUTHORIZATION_FAILED: librdkafka looks for the coordinator of the group even where it does not use it.
REFUSED = (
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError._FATAL,
)


class Change(NamedTuple):
    """A record of a changelog: the row's new value, or None for its removal, and when Kafka was given it."""

    topic: str
    key: bytes
    value: bytes | None
    timestamp_ms: int


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
        "log_level": 0,
        "error_cb": lambda _: None,
    }


class ChangelogReader:
    """Reads changelog topics from their beginning, or only their last records, and whatever comes after.

    It belongs to no consumer group and leaves nothing behind in Kafka. A broker that is away or a topic that
    does not exist is waited for; only a refusal is an error.
    """

    def __init__(self, client_config: Mapping[str, str], topics: Iterable[str], last: int | None = None) -> None:
        start = OFFSET_BEGINNING if last is None else _OFFSET_TAIL - last
        self._places = [TopicPartition(topic, 0, start) for topic in topics]
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


def _change(message: Message) -> Change:
    topic, key = message.topic(), message.key()
    assert topic is not None
    value = message.value()
    return Change(topic, key if key is not None else b"", value, message.timestamp()[1])


def _judge(message: Message, error: KafkaError) -> None:
    if error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
        raise LiveboardError(trouble.permission([str(message.topic())], "read"))
    if error.code() in REFUSED:
        raise LiveboardError(f"cannot read the changelog {message.topic()}: {error.str()}")
