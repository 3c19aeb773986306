"""Topics: which there are, where they begin and end, and our own changelogs."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import (
    AclOperation,
    AdminClient,
    ClusterMetadata,
    ConfigResource,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from liveboard.contract.errors import LiveboardError
from liveboard.contract.names import Names
from liveboard.kafka import trouble

_TIMEOUT_S = 30.0
# How often a client that gets no answer is asked why.
_LOOK_S = 1.0
# A client remembers for a quarter of an hour that a topic has no leader or does not exist, also if that was so only
# for a moment.
KNOWN_MS = 1_000
# Two values of the largest allowed size (8 MiB) in one joined row.
MAX_CHANGELOG_BYTES = 20 * 1024 * 1024
_CHANGELOG_CONFIG = {
    "cleanup.policy": "compact",
    "max.message.bytes": str(MAX_CHANGELOG_BYTES),
    "min.cleanable.dirty.ratio": "0.5",
    "retention.ms": "-1",
}

_NOT_CONNECTED = (KafkaError._TIMED_OUT, KafkaError._TRANSPORT, KafkaError._AUTHENTICATION, KafkaError._SSL)
_OTHER_LEADER = (KafkaError.FENCED_LEADER_EPOCH, KafkaError.UNKNOWN_LEADER_EPOCH)
_NO_LEADER_YET = (KafkaError.LEADER_NOT_AVAILABLE, KafkaError.NOT_LEADER_FOR_PARTITION, *_OTHER_LEADER)

_DONE_ALREADY = (KafkaError.TOPIC_ALREADY_EXISTS, KafkaError.UNKNOWN_TOPIC_OR_PART)

Offsets = Mapping[str, Mapping[str, int]]
"""Topic to partition (as text, the way Spark writes it) to offset."""


class Admin:
    """Questions and orders to one Kafka cluster; every failure is a LiveboardError."""

    def __init__(self, client_config: Mapping[str, str]) -> None:
        self._servers = client_config["bootstrap.servers"]
        self._config = client_config
        self._complaints = trouble.Complaints(client_config)
        self._connect()

    def _connect(self) -> None:
        try:
            config = {**self._config, "log_level": 0, "metadata.max.age.ms": KNOWN_MS, "error_cb": self._complaints}
            self._client = AdminClient(config)  # type: ignore[arg-type]
        except KafkaException as error:
            raise LiveboardError(f"kafka: expected settings that can be used, found: {_text(error)}") from None

    def cluster_id(self) -> str:
        """The id that the cluster was given when it was made."""
        return str(self._metadata().cluster_id)

    def partitions(self) -> dict[str, int]:
        """Every topic with its number of partitions."""
        topics = self._metadata().topics
        return {name: len(topic.partitions) for name, topic in topics.items() if topic.error is None}

    def require(self, topics: Iterable[str]) -> dict[str, int]:
        """The partitions of these topics, or an error that names those that are missing or may not be seen."""
        known, wanted = self.partitions(), set(topics)
        missing = wanted - known.keys()
        if hidden := self.unreadable(missing):
            raise LiveboardError(trouble.permission(hidden))
        if missing:
            raise LiveboardError(
                f"expected the Kafka topics {sorted(missing)} at {self._servers}, found no such topics"
            )
        return {topic: known[topic] for topic in wanted}

    def unreadable(self, topics: Iterable[str]) -> set[str]:
        """Those of these topics that Kafka does not let us read; some of them may not exist."""
        return self._without(topics, AclOperation.READ)

    def require_permissions(self, changelogs: Iterable[str], new_changelog: str) -> None:
        """An error unless we may write those of these topics that exist, and may create the new one."""
        known = self.partitions().keys()
        if refused := self._without(known & set(changelogs), AclOperation.WRITE):
            raise LiveboardError(trouble.permission(refused, "write"))
        if new_changelog not in known:
            self._wait(self._client.create_topics([NewTopic(new_changelog, 1)], validate_only=True), "create")

    def _without(self, topics: Iterable[str], operation: AclOperation) -> set[str]:
        names = sorted(set(topics))
        if not names:
            return set()
        described = self._client.describe_topics(
            TopicCollection(names), include_authorized_operations=True, request_timeout=_TIMEOUT_S
        )
        return {name for name, future in described.items() if not self._may(operation, name, future)}

    def _may(self, operation: AclOperation, name: str, future: Any) -> bool:
        try:
            allowed = _answer(future).authorized_operations
        except KafkaException as error:
            if error.args[0].code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
                return False
            if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                return True
            raise self._failure(error, "describe", name) from error
        # Clusters without access control name no operations, or all.
        return not allowed or operation in allowed or AclOperation.ALL in allowed

    def is_compacted(self, topic: str) -> bool:
        """Whether Kafka keeps the newest record of every key; False also where we may not know."""
        asked = ConfigResource(ResourceType.TOPIC, topic)
        try:
            found = _answer(self._client.describe_configs([asked])[asked])
        except KafkaException:
            return False
        return "compact" in str(found["cleanup.policy"].value)

    def topic_ids(self, topics: Iterable[str]) -> dict[str, str]:
        """The id that Kafka gave each of these topics when it was made; those that are not there are left out."""
        names = sorted(set(topics))
        described = self._client.describe_topics(TopicCollection(names), request_timeout=_TIMEOUT_S) if names else {}
        found = {}
        for name, future in described.items():
            try:
                found[name] = str(_answer(future).topic_id)
            except KafkaException as error:
                if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                    raise self._failure(error, "describe", name) from error
        return found

    def create(self, topics: Iterable[str], partitions: int = 1) -> None:
        """Creates the topics that are not there yet."""
        self._create([NewTopic(name, partitions) for name in set(topics)])

    def create_changelogs(self, topics: Iterable[str], also: Mapping[str, str] | None = None) -> None:
        """Creates changelog topics: compacted, and of one partition so that all readers see one order."""
        self._create([NewTopic(name, 1, config={**_CHANGELOG_CONFIG, **(also or {})}) for name in set(topics)])

    def create_log(self, topic: str) -> None:
        """Creates a topic of one partition whose records have the broker's time, and go after a while."""
        times = {"message.timestamp.type": "LogAppendTime", "retention.ms": "3600000", "segment.ms": "600000"}
        self._create([NewTopic(topic, 1, config=times)])

    def create_generation(self, names: Names, generation: str, tables: Iterable[str]) -> None:
        """Creates what a generation writes to: its tables' changelogs, and a topic that keeps who asks for repairs."""
        changelogs = [NewTopic(names.changelog(generation, table), 1, config=_CHANGELOG_CONFIG) for table in tables]
        self._create([*changelogs, NewTopic(names.repairs(generation), 1, config={"retention.ms": "-1"})])

    def delete_records(self, topic: str, before: int) -> None:
        """Deletes the topic's records below this offset."""
        place = TopicPartition(topic, 0, before)
        try:
            _answer(self._client.delete_records([place])[place])
        except KafkaException as error:
            raise self._failure(error, "delete records of", topic) from error

    def delete(self, topics: Iterable[str]) -> None:
        """Deletes the topics that are there."""
        names = sorted(self.partitions().keys() & set(topics))
        if names:
            self._wait(self._client.delete_topics(names, operation_timeout=_TIMEOUT_S), "delete")

    def offsets(self, partitions: Mapping[str, int], where: str) -> Offsets:
        """Where these topics begin ("earliest") or end ("latest") now."""
        spec = OffsetSpec.earliest() if where == "earliest" else OffsetSpec.latest()  # type: ignore[no-untyped-call]
        asked = [TopicPartition(t, p) for t, count in partitions.items() for p in range(count)]
        found: dict[str, dict[str, int]] = {topic: {} for topic in partitions}
        answers = self._client.list_offsets(dict.fromkeys(asked, spec)) if asked else {}
        for place in asked:
            found[place.topic][str(place.partition)] = self._offset(place, spec, answers[place])
        return found

    def _offset(self, place: TopicPartition, spec: OffsetSpec, answer: Any) -> int:
        """The offset in the answer; where that is an error that passes, it is asked for again."""
        deadline = time.monotonic() + _TIMEOUT_S
        while True:
            try:
                return int(_answer(answer).offset)
            except KafkaException as error:
                # A topic that was made a moment ago has no leader yet.
                if error.args[0].code() not in _NO_LEADER_YET or time.monotonic() > deadline:
                    raise self._failure(error, "read", place.topic) from error
                if error.args[0].code() in _OTHER_LEADER:
                    # A client goes on for minutes with what it knew of a leader.
                    self._connect()
                time.sleep(0.01)
                answer = self._client.list_offsets({place: spec})[place]

    def _metadata(self) -> ClusterMetadata:
        deadline = time.monotonic() + _TIMEOUT_S
        self._complaints.forget()
        while True:
            try:
                return self._client.list_topics(timeout=_LOOK_S)
            except KafkaException as error:
                self._client.poll(0)
                # Brokers come back by themselves; what is found to be wrong with us has to be mended by somebody.
                if time.monotonic() > deadline:
                    raise self._complaints.unavailable(_text(error)) from error
                if cause := self._complaints.cause:
                    raise trouble.KafkaUnavailable(cause) from error
                # With the certificates as they are now: a client uses for ever those that it began with.
                self._complaints.forget()
                self._connect()

    def _create(self, topics: Iterable[NewTopic]) -> None:
        there = self.partitions()
        new = {topic.topic: topic for topic in topics if topic.topic not in there}
        if not new:
            return
        self._wait(self._client.create_topics([new[name] for name in sorted(new)]), "create")
        # The broker that answers may hear of them a moment after the one that made them.
        deadline = time.monotonic() + _TIMEOUT_S
        while (missing := new.keys() - self.partitions().keys()) and time.monotonic() < deadline:
            time.sleep(0.01)
        if missing:
            raise LiveboardError(f"created the Kafka topics {sorted(missing)}, but found them missing afterwards")

    def _wait(self, futures: Mapping[str, Any], what: str) -> None:
        for name, future in futures.items():
            try:
                _answer(future)
            except KafkaException as error:
                # Somebody else may have done it in the meantime.
                if error.args[0].code() not in _DONE_ALREADY:
                    raise self._failure(error, what, name) from error

    def _failure(self, error: KafkaException, what: str, topic: str) -> LiveboardError:
        code = error.args[0].code()
        if code == KafkaError.TOPIC_AUTHORIZATION_FAILED:
            return LiveboardError(trouble.permission([topic], what))
        if code in _NOT_CONNECTED:
            self._client.poll(0)
            return self._complaints.unavailable(_text(error))
        return LiveboardError(f"cannot {what} Kafka topic {topic!r}: {_text(error)}")


def total(offsets: Mapping[str, Mapping[str, int]]) -> int:
    """All partitions' offsets added up."""
    return sum(offset for partitions in offsets.values() for offset in partitions.values())


def _answer(future: Future[Any]) -> Any:
    """The client's answer; a KafkaException also where the client gives none in time."""
    try:
        return future.result(_TIMEOUT_S)
    except TimeoutError:
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT)) from None


def _text(error: KafkaException) -> str:
    return str(error.args[0].str()) if error.args else str(error)
