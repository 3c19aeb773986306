"""Passes control messages on to the control topic."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping

from confluent_kafka import KafkaError, Message, Producer

from liveboard.errors import LiveboardError

_TIMEOUT_MS = 10_000
_POLL_S = 0.2


class ControlWriter:
    """Writes to the control topic; a message that is acknowledged is on all replicas of Kafka that are in sync."""

    def __init__(self, client_config: Mapping[str, str], topic: str) -> None:
        self._topic = topic
        self._producer = Producer(
            {
                **client_config,
                "acks": "all",
                "enable.idempotence": True,
                "message.timeout.ms": _TIMEOUT_MS,
                "log_level": 0,
                "error_cb": lambda _: None,
            }
        )
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._poll, name="control writer", daemon=True)

    def start(self) -> None:
        """Begins to serve delivery reports."""
        self._thread.start()

    async def stop(self) -> None:
        """Ends the thread."""
        self._stopping.set()
        await asyncio.to_thread(self._thread.join)

    async def write(self, message: bytes) -> tuple[int, int]:
        """The partition and the offset that the message got; otherwise a LiveboardError."""
        loop = asyncio.get_running_loop()
        written: asyncio.Future[tuple[int, int]] = loop.create_future()

        def settle(error: KafkaError | None, message: Message) -> None:
            if written.done():
                return
            if error is not None:
                expected = f"expected Kafka to take a message for {self._topic}"
                written.set_exception(LiveboardError(f"{expected}, found: {error.str()}"))
            else:
                written.set_result((message.partition() or 0, message.offset() or 0))

        def delivered(error: KafkaError | None, message: Message) -> None:
            loop.call_soon_threadsafe(settle, error, message)

        self._producer.produce(self._topic, message, on_delivery=delivered)
        return await written

    def _poll(self) -> None:
        while not self._stopping.is_set():
            self._producer.poll(_POLL_S)
