"""Follows changelog topics, from the one generation to the next."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Generator, Iterable, Mapping
from types import TracebackType
from typing import Any, NamedTuple, Self

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, TopicPartition

from liveboard.contract.names import changelog_topic, generation_number, parse_changelog_topic
from liveboard.errors import LiveboardError
from liveboard.kafka.admin import Admin

_BATCH = 10_000
_WATCH_S = 1.0
_OFFSET_TAIL = -2000  # librdkafka's RD_KAFKA_OFFSET_TAIL(n) is this less n: the last n records
REFUSED = (
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError._FATAL,
)


class Change(NamedTuple):
    """A record of a changelog: the row's new value, or None for its removal, and when Kafka was given it."""

    topic: str
    key: bytes
    value: bytes | None
    timestamp_ms: int


def latest_generation(admin: Admin) -> str | None:
    """The newest generation that has changelogs."""
    found = {parsed[0] for topic in admin.partitions() if (parsed := parse_changelog_topic(topic))}
    return max(found, key=generation_number, default=None)


class ChangelogReader:
    """Reads changelog topics from their beginning, or only their last records, and whatever comes after.

    It belongs to no consumer group and leaves nothing behind in Kafka. A broker that is away or a topic that
    does not exist is waited for; only a refusal is an error.
    """

    def __init__(self, client_config: Mapping[str, str], topics: Iterable[str], last: int | None = None) -> None:
        start = OFFSET_BEGINNING if last is None else _OFFSET_TAIL - last
        self._places = [TopicPartition(topic, 0, start) for topic in topics]
        self._config: dict[str, Any] = {
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


class GenerationWatch:
    """Knows the newest generation, at most about a second late, and never makes its user wait for Kafka."""

    def __init__(self, admin: Admin) -> None:
        self.newest: str | None = None
        self._admin = admin
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="generation watch", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._closed.set()

    def _watch(self) -> None:
        while not self._closed.is_set():
            # While Kafka is away, the generation that was the newest still is.
            with contextlib.suppress(LiveboardError):
                self.newest = latest_generation(self._admin) or self.newest
            self._closed.wait(_WATCH_S)


def follow(
    client_config: Mapping[str, str], tables: Iterable[str], last: int | None = None
) -> Generator[tuple[str | None, list[Change]]]:
    """For ever, a few times a second at least: the generation being read and what came from its changelogs.

    The generation is None while there is none. When it changes, the rows that follow are the new one's.
    """
    tables = list(tables)
    with GenerationWatch(Admin(client_config)) as watch:
        while True:
            generation = watch.newest
            if generation is None:
                time.sleep(0.1)
                yield None, []
                continue
            topics = [changelog_topic(generation, table) for table in tables]
            with ChangelogReader(client_config, topics, last) as reader:
                while watch.newest == generation:
                    yield generation, reader.read()


def _change(message: Message) -> Change:
    topic, key = message.topic(), message.key()
    assert topic is not None
    value = message.value()
    return Change(topic, key if key is not None else b"", value, message.timestamp()[1])


def _judge(message: Message, error: KafkaError) -> None:
    if error.code() in REFUSED:
        raise LiveboardError(f"cannot read the changelog {message.topic()}: {error.str()}")
