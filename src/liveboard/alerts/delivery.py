"""Tells receivers what the alerts topic says: in order, at least once each, however long they are away.

Each receiver of an alert reads the topic for itself, and how far it came is kept in a small topic. So no receiver waits
for another, nor does the board wait for any.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import sha256
from types import TracebackType
from typing import Any, Self

import orjson
from confluent_kafka import Consumer, Message, Producer, TopicPartition

from liveboard.alerts.receivers import TOPIC, AlertRecord, NotReceived, Receiver, TopicReceiver, Webhook
from liveboard.backoff import Backoff
from liveboard.config import AlertSettings
from liveboard.contract.errors import LiveboardError
from liveboard.contract.names import Names
from liveboard.kafka.admin import Admin
from liveboard.kafka.reader import consumer_config, records_between

_WAIT_S = 0.2
_LONGEST_PAUSE_S = 60.0
_FLUSH_S = 10.0
_TRIES_OF_REFUSED = 5

Log = Callable[[str], None]


class Delivery:
    """One receiver of one alert, in a thread of its own."""

    def __init__(self, alert: str, receiver: Receiver, key: bytes, log: Log) -> None:
        self.alert = alert
        self.key = key
        self.failures = 0
        self.problem = ""
        """Why the receiver is not told; empty while it is."""
        self._receiver = receiver
        self._log = log

    def run(self, batches: Iterator[list[Message]], keep: Callable[[int], None], stopping: threading.Event) -> None:
        """Tells the receiver all that comes; `keep` hears how far it has come."""
        for messages in batches:
            ours = [message for message in messages if self._is_ours(message)]
            for at in range(0, len(ours), self._receiver.at_once):
                some = ours[at : at + self._receiver.at_once]
                if not self._deliver(some, stopping):
                    return
                keep((some[-1].offset() or 0) + 1)

    def _is_ours(self, message: Message) -> bool:
        try:
            return message.value() is not None and orjson.loads(message.key() or b"")[0] == self.alert
        except (orjson.JSONDecodeError, LookupError, TypeError):
            return False

    def _deliver(self, messages: Sequence[Message], stopping: threading.Event) -> bool:
        """Tries until the receiver has it, or refuses it for good; False if everything ends before."""
        records = [
            AlertRecord(f"{message.topic()}-{message.partition()}-{message.offset()}", message.key() or b"", value)
            for message in messages
            if (value := message.value()) is not None
        ]
        backoff, tries = Backoff(_LONGEST_PAUSE_S), 0
        while not stopping.is_set():
            try:
                self._receiver.send(records)
                if self.problem:
                    self._log(f"alert {self.alert}: {self._receiver.name} takes records")
                self.problem = ""
                return True
            except NotReceived as error:
                tries += 1
                self.failures += 1
                gives_up = error.is_final and tries >= _TRIES_OF_REFUSED
                what = f"{records[0].place} is given up" if gives_up else "trying again"
                problem = f"alert {self.alert}: {error}; {what}"
                if problem != self.problem:
                    self._log(problem)
                self.problem = problem
                if gives_up:
                    return True
                stopping.wait(backoff.failed())
        return False


class Deliveries:
    """All receivers of all alerts, from when it is entered until it is left."""

    def __init__(
        self,
        client_config: Mapping[str, str],
        names: Names,
        admin: Admin,
        alerts: Sequence[AlertSettings],
        log: Log,
    ) -> None:
        self._client_config = client_config
        self._names = names
        self._admin = admin
        self._log = log
        self._stopping = threading.Event()
        self._threads: list[threading.Thread] = []
        self.all = [
            Delivery(alert.name, self._receiver(alert, to), _key(alert.name, to), log)
            for alert in alerts
            for to in dict.fromkeys(alert.notify)
            if to != f"{TOPIC}{names.alerts}"
        ]

    def __enter__(self) -> Self:
        """Begins where each receiver was; a new one gets what comes from now on."""
        if not self.all:
            return self
        self._admin.create_changelogs([self._names.delivered])
        options: dict[str, Any] = {"enable.idempotence": "true", "log_level": 0, "error_cb": lambda _: None}
        self._producer = Producer({**self._client_config, **options})
        positions = self._positions()
        end = self._admin.offsets({self._names.alerts: 1}, "latest")[self._names.alerts]["0"]
        for delivery in self.all:
            if delivery.key not in positions:
                # On record before anything else is told: otherwise a crash would lose what comes now.
                self._keep(delivery.key, end)
        if self._producer.flush(_FLUSH_S):
            raise LiveboardError(f"cannot write to {self._names.delivered}: no answer")
        for delivery in self.all:
            begin = positions.get(delivery.key, end)
            thread = threading.Thread(target=self._run, args=(delivery, begin), name="delivery", daemon=True)
            self._threads.append(thread)
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stopping.set()
        if self.all:
            for thread in self._threads:
                thread.join(_FLUSH_S)
            self._producer.flush(_FLUSH_S)

    def _receiver(self, alert: AlertSettings, to: str) -> Receiver:
        if not to.startswith(TOPIC):
            return Webhook(to, alert.secret)
        return TopicReceiver(self._client_config, to.removeprefix(TOPIC))

    def _positions(self) -> dict[bytes, int]:
        topic = self._names.delivered
        ends = self._admin.offsets({topic: 1}, "latest")
        records = records_between(self._client_config, {topic: {}}, ends)
        return {message.key() or b"": int(value) for message in records if (value := message.value())}

    def _keep(self, key: bytes, position: int) -> None:
        self._producer.produce(self._names.delivered, str(position), key)
        self._producer.poll(0)

    def _run(self, delivery: Delivery, begin: int) -> None:
        options = {"queued.max.messages.kbytes": 1_024, "max.poll.interval.ms": 86_400_000}
        backoff = Backoff()
        position = begin

        def keep(offset: int) -> None:
            nonlocal position
            position = offset
            self._keep(delivery.key, offset)

        while not self._stopping.is_set():
            consumer = Consumer({**consumer_config(self._client_config), **options})
            try:
                consumer.assign([TopicPartition(self._names.alerts, 0, position)])
                delivery.run(self._batches(consumer), keep, self._stopping)
            except Exception as error:
                delivery.failures += 1
                delivery.problem = f"alert {delivery.alert}: {error}"
                self._log(delivery.problem)
                self._stopping.wait(backoff.failed())
            finally:
                consumer.close()

    def _batches(self, consumer: Consumer) -> Iterator[list[Message]]:
        while not self._stopping.is_set():
            first = consumer.poll(_WAIT_S)
            if first is not None:
                messages = [first, *consumer.consume(1_000, 0)]
                yield [message for message in messages if message.error() is None]


def _key(alert: str, to: str) -> bytes:
    # Addresses may have secrets in them.
    return orjson.dumps([alert, sha256(to.encode()).hexdigest()])
