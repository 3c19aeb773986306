"""Where topics end, asked without waiting for the answer."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from liveboard.kafka.admin import KNOWN_MS

_ASK_AGAIN_S = 0.5

Ask = Callable[[str], "Future[Any]"]
"""Asks for the end of a topic; the answer has it as `offset`, or is a KafkaException."""


def asking(client_config: Mapping[str, str]) -> Ask:
    """Asks Kafka, with the certificates as they are now."""
    admin = AdminClient({**client_config, "log_level": 0, "metadata.max.age.ms": str(KNOWN_MS)})

    def ask(topic: str) -> Future[Any]:
        place = TopicPartition(topic, 0)
        spec = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        return admin.list_offsets({place: spec})[place]

    return ask


class TopicEnds:
    """Asks about the topics that are wanted, and a moment later again where the answer was an error."""

    def __init__(self, ask: Ask, clock: Callable[[], float] = time.monotonic) -> None:
        self._ask = ask
        self._clock = clock
        self._asked: dict[str, tuple[float, Future[Any]]] = {}

    @property
    def is_asking(self) -> bool:
        """Whether there is a question without an answer."""
        return bool(self._asked)

    def hear(self, wanted: Iterable[str]) -> dict[str, int | KafkaError]:
        """Asks what is wanted and not asked yet; returns what is known now: where a topic ends, or why it is not known.

        What is not wanted any more is forgotten.
        """
        known: dict[str, int | KafkaError] = {}
        before, self._asked = self._asked, {}
        for topic in wanted:
            asked_s, answer = before.get(topic) or self._question(topic)
            if answer.done():
                try:
                    known[topic] = int(answer.result().offset)
                    continue
                except KafkaException as error:
                    known[topic] = error.args[0]
                if self._clock() - asked_s >= _ASK_AGAIN_S:
                    asked_s, answer = self._question(topic)
            self._asked[topic] = (asked_s, answer)
        return known

    def _question(self, topic: str) -> tuple[float, Future[Any]]:
        return self._clock(), self._ask(topic)
