"""Reads control messages."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import NamedTuple, Self

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka import Message as KafkaMessage

from liveboard.contract.changelog import timestamp_text
from liveboard.contract.errors import LiveboardError
from liveboard.kafka import trouble
from liveboard.kafka.admin import Admin
from liveboard.kafka.reader import REFUSED, consumer_config

_BATCH = 1_000
_PATIENCE_S = 30.0
_WAIT_S = 0.1
_ASK_S = 1.0


class Message(NamedTuple):
    """A record of the control topic."""

    partition: int
    offset: int
    ts: str
    value: bytes | None

    @property
    def place(self) -> str:
        """Where it is in the topic, partition-offset: its name for people and its key in the table control_raw."""
        return f"{self.partition}-{self.offset}"

    @property
    def text(self) -> str | None:
        """The value as people may read it, whatever its bytes are."""
        return None if self.value is None else self.value.decode(errors="replace")


class ControlTopic:
    """Reads the control topic from the given offsets, or from its beginning; belongs to no consumer group."""

    def __init__(self, client_config: Mapping[str, str], topic: str, begin: Mapping[str, int], admin: Admin) -> None:
        self.topic = topic
        self.problem = ""
        """Why the topic cannot be read, for as long as that is so."""
        self._ask_at = 0.0
        self._config = consumer_config(client_config)
        self._begin = begin
        self._admin = admin

    def __enter__(self) -> Self:
        partitions = self._admin.require([self.topic])
        first = self._admin.offsets(partitions, "earliest")[self.topic]
        self._end = self._admin.offsets(partitions, "latest")[self.topic]
        self._next = {at: max(self._begin.get(at, 0), offset) for at, offset in first.items()}
        self._consumer = Consumer(self._config)
        self._consumer.assign([TopicPartition(self.topic, int(at), offset) for at, offset in self._next.items()])
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._consumer.close()

    def backlog(self) -> list[Message]:
        """All that the topic held when it was opened, oldest first."""
        messages: list[Message] = []
        deadline = time.monotonic() + _PATIENCE_S
        while any(self._next[at] < end for at, end in self._end.items()):
            if time.monotonic() > deadline:
                raise LiveboardError(f"control.topic: cannot read {self.topic!r} to its end at {self._end}")
            messages += self.read(_WAIT_S)
        return sorted(messages, key=_age)

    def read(self, timeout_s: float) -> list[Message]:
        """What has come, oldest first; empty when nothing comes within the timeout."""
        first = self._consumer.poll(timeout_s)
        found = [first, *self._consumer.consume(_BATCH, 0)] if first else []
        self._look_for_problems(found)
        read = [
            Message(m.partition() or 0, m.offset() or 0, timestamp_text(m.timestamp()[1]), m.value())
            for m in found
            if m.error() is None
        ]
        self._next |= {str(message.partition): message.offset + 1 for message in read}
        return sorted(read, key=_age)

    def _look_for_problems(self, found: Iterable[KafkaMessage]) -> None:
        # The client says once that it is refused. It does not say when it may read again, so we ask.
        if any(error.code() in REFUSED for message in found if (error := message.error())):
            self.problem = trouble.permission([self.topic], "read")
        elif self.problem and time.monotonic() > self._ask_at:
            self._ask_at = time.monotonic() + _ASK_S
            with contextlib.suppress(trouble.KafkaUnavailable):
                self.problem = self.problem if self._admin.unreadable([self.topic]) else ""


def _age(message: Message) -> tuple[str, int, int]:
    return message.ts, message.partition, message.offset
