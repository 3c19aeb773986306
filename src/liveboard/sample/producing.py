"""Sends events to Kafka at an even pace."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from liveboard.contract.errors import LiveboardError

_BEHIND_S = 1.0
_SHORTEST_SLEEP_S = 0.001
_SHOW_S = 0.5
_DELIVERY_PATIENCE_S = 10.0


@dataclass(frozen=True)
class Event:
    """A record to be produced; `broken` names what is wrong with it."""

    topic: str
    key: str
    value: bytes | None
    broken: str = ""
    headers: tuple[tuple[str, bytes], ...] = ()


def produce(
    events: Iterable[Event],
    rate: float,
    client_config: Mapping[str, str],
    stopping: threading.Event,
    show: Callable[[str], None] = lambda _: None,
) -> int:
    """Sends the events at an even pace until they end or `stopping` is set; returns how many Kafka took."""
    sender = _Sender(client_config)
    started = shown = time.monotonic()
    due = started
    try:
        for event in events:
            if stopping.is_set():
                break
            sender.send(event, stopping)
            now = time.monotonic()
            if now - shown >= _SHOW_S:
                show(f"{sender.taken:,} events sent, {sender.taken / (now - started):,.0f} per second")
                shown = now
            if rate:
                # After a long pause the events go on at their pace, without a burst.
                due = max(due + 1 / rate, now - _BEHIND_S)
                if due - now >= _SHORTEST_SLEEP_S:
                    stopping.wait(due - now)
    finally:
        sender.finish()
    return sender.taken


class _Sender:
    """A producer that never drops an event in silence."""

    def __init__(self, client_config: Mapping[str, str]) -> None:
        self.taken = 0
        self._servers = client_config["bootstrap.servers"]
        self._refused: KafkaError | None = None
        config: dict[str, Any] = {
            **client_config,
            "log_level": 0,
            "error_cb": lambda _: None,
            "linger.ms": 5,
            # Makes records over the size limit small enough for any broker's own limit.
            "compression.type": "lz4",
            "message.max.bytes": 16 * 1024 * 1024,
        }
        self._producer = Producer(config)

    def send(self, event: Event, stopping: threading.Event) -> None:
        """Queues the event, and waits while the queue is full."""
        while not stopping.is_set():
            try:
                self._producer.produce(
                    event.topic, event.value, event.key, headers=list(event.headers), on_delivery=self._delivered
                )
                break
            except BufferError:
                self._producer.poll(0.1)
            except KafkaException as error:
                self._refused = error.args[0]
                break
        self._producer.poll(0)
        if self._refused:
            raise LiveboardError(f"Kafka at {self._servers} refused a sample event: {self._refused.str()}")

    def finish(self) -> None:
        """Waits until Kafka has the events that are queued, but not for ever."""
        if self._producer.flush(_DELIVERY_PATIENCE_S):
            self._producer.purge()

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            self.taken += 1
        else:
            self._refused = error
