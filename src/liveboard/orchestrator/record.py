"""The orchestrator's record in Kafka: the status document and the table of control messages."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Self

from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient
from msgspec.structs import replace as changed

from liveboard.contract.changelog import encode_row
from liveboard.contract.errors import LiveboardError
from liveboard.contract.names import Names
from liveboard.contract.status import STATUS_KEY, BoardStatus, decode_status
from liveboard.kafka import trouble
from liveboard.kafka.admin import Admin, total
from liveboard.kafka.reader import ChangelogReader
from liveboard.orchestrator.hearing import Verdict
from liveboard.orchestrator.ownership import Ownership

_PATIENCE_S = 30.0
_FLUSH_S = 0.2
_RETRY_S = 1.0
_LOOK_S = 5.0
_LOOKS = 3
_GONE = (KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION, KafkaError.UNKNOWN_TOPIC_OR_PART)


class LoginLost(Exception):
    """Kafka does not let us in any more: why, in one sentence."""


class BoardRecord:
    """Reads the record that an earlier orchestrator left, and keeps it."""

    def __init__(
        self,
        client_config: Mapping[str, str],
        admin: Admin,
        ownership: Ownership,
        names: Names,
        log: Callable[[str], None],
        stopping: threading.Event,
    ) -> None:
        self.status = BoardStatus(sources=())
        """The document as it was left, then as it was kept last."""
        self.kept_at = 0.0
        """When it was kept, by the clock that never goes back."""
        self._ownership = ownership
        self._names = names
        self._client_config = client_config
        self._admin = admin
        self._log = log
        self._stopping = stopping
        self._complaints = trouble.Complaints(client_config)

    def __enter__(self) -> Self:
        # Nothing may get lost or out of order, however long Kafka is away.
        lossless = {"enable.idempotence": "true", "message.timeout.ms": "0", "reconnect.backoff.max.ms": "1000"}
        # How long a topic that Kafka does not know may be about to appear.
        lossless["topic.metadata.propagation.max.ms"] = "5000"
        quiet = {"linger.ms": "0", "log_level": 0, "error_cb": self._complaints}
        self._producer = Producer({**self._client_config, **lossless, **quiet})
        self.status = self._newest() or self.status
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._producer.flush(_FLUSH_S)

    def _newest(self) -> BoardStatus | None:
        """The document as it was left, or None when there has never been one."""
        places = {self._names.status: 1}
        if total(self._admin.offsets(places, "earliest")) == total(self._admin.offsets(places, "latest")):
            return None
        deadline = time.monotonic() + _PATIENCE_S
        with ChangelogReader(self._client_config, [self._names.status], last=1) as reader:
            while time.monotonic() < deadline:
                for change in reader.read():
                    if change.value:
                        return decode_status(change.value)
        raise LiveboardError(f"expected the newest record of {self._names.status}, found none in {_PATIENCE_S:.0f} s")

    def keep(self, status: BoardStatus) -> None:
        """Publishes the document; when this returns, every reader will see it, unless everything is stopping.

        While Kafka is away this waits; where it is our login that Kafka refuses, a LoginLost; where somebody else keeps
        the board now, an OwnershipLost.
        """
        self._ownership.check()
        self.status, self.kept_at = changed(status, owner=self._ownership.owner), time.monotonic()
        self._send(self._names.status, self.status.encode(), STATUS_KEY)

    def keep_verdict(self, verdict: Verdict) -> None:
        """Publishes what became of a control message, as its row of the table control_raw."""
        message = verdict.message
        row = [message.partition, message.offset, message.text, verdict.word, verdict.reason or None, message.ts]
        self._send(self._names.verdicts, encode_row(row), message.place.encode())

    def _send(self, topic: str, value: bytes, key: bytes) -> None:
        """Sends it again until Kafka has it: a permission that is taken away may come back."""
        said = ""
        while (why := self._refusal(topic, value, key)) and not self._stopping.is_set():
            if why != said:
                self._log(f"{why}; trying again")
            said = why
            self._stopping.wait(_RETRY_S)

    def _refusal(self, topic: str, value: bytes, key: bytes) -> str:
        """Sends it, however long Kafka is away, and returns why Kafka did not take it; empty if it did."""
        reports: list[KafkaError | None] = []
        try:
            self._producer.produce(topic, value, key, on_delivery=lambda error, _: reports.append(error))
        except KafkaException as refused:
            reports.append(refused.args[0])
        self._wait()
        for error in filter(None, reports):
            if error.code() in _GONE:
                return self._made_again(topic)
            denied = error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
            return trouble.permission([topic], "write") if denied else f"cannot write to {topic}: {error.str()}"
        return ""

    def _made_again(self, topic: str) -> str:
        """Makes a topic again that somebody has deleted."""
        try:
            self._admin.create_changelogs([topic])
        except LiveboardError as error:
            return f"expected the topic {topic}, found none, and cannot make it: {error}"
        return f"expected the topic {topic}, found none; it was made again"

    def _wait(self) -> None:
        """Waits until Kafka has taken all; a broker that is away comes back."""
        look_at, locked_out = time.monotonic() + _LOOK_S, 0
        while self._producer.flush(_FLUSH_S) and not self._stopping.is_set():
            if time.monotonic() > look_at:
                cause = self._complaints.cause
                locked_out += self._others_get_in()
                if cause or locked_out == _LOOKS:
                    self._producer.purge()
                    raise LoginLost(cause or "expected a client as good as a new one, found it locked out")
                look_at = time.monotonic() + _LOOK_S
        self._complaints.forget()

    def _others_get_in(self) -> bool:
        """Whether a new client is let in: it has the certificates of now, and ours those of its beginning."""
        try:
            AdminClient({**self._client_config, "log_level": 0}).list_topics(timeout=_RETRY_S)
        except KafkaException:
            return False
        return True
