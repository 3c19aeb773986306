"""Writes what viewers ask for to topics: control messages, and what people keep."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from confluent_kafka import KafkaError, Message, Producer

from liveboard.contract.errors import LiveboardError
from liveboard.kafka import trouble
from liveboard.kafka.admin import Admin

_TIMEOUT_S = 10


class TopicWriter:
    """Writes to one topic; a message that is acknowledged is on all replicas of Kafka that are in sync.

    A changelog is made with the first message, where there is none.
    """

    def __init__(self, client_config: Mapping[str, str], topic: str, *, is_changelog: bool = False) -> None:
        self._client_config = client_config
        self._topic = topic
        self._is_changelog = is_changelog
        self._complaints = trouble.Complaints(client_config)
        self._producer: Producer | None = None

    async def write(self, message: bytes | None, key: bytes | None = None) -> tuple[int, int]:
        """The partition and the offset that the message got; otherwise a LiveboardError."""
        return await asyncio.to_thread(self._write, message, key)

    def _write(self, message: bytes | None, key: bytes | None) -> tuple[int, int]:
        producer = self._producer = self._producer or self._connected()
        reports: list[tuple[KafkaError | None, Message]] = []
        producer.produce(self._topic, message, key, on_delivery=lambda error, sent: reports.append((error, sent)))
        while not reports:
            producer.flush(_TIMEOUT_S)
        error, sent = reports[0]
        if error is None:
            return sent.partition() or 0, sent.offset() or 0
        # The next one has the certificates as they are then.
        self._producer = None
        if error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
            raise LiveboardError(trouble.permission([self._topic], "write"))
        if error.code() == KafkaError._MSG_TIMED_OUT:
            raise self._complaints.unavailable(f"a message for {self._topic} was not taken within {_TIMEOUT_S} s")
        raise LiveboardError(f"expected Kafka to take a message for {self._topic}, found: {error.str()}")

    def _connected(self) -> Producer:
        self._complaints.forget()
        if self._is_changelog:
            Admin(self._client_config).create_changelogs([self._topic])
        return Producer(
            {
                **self._client_config,
                "acks": "all",
                "enable.idempotence": True,
                "message.timeout.ms": _TIMEOUT_S * 1000,
                "linger.ms": 0,
                "log_level": 0,
                "error_cb": self._complaints,
            }
        )
