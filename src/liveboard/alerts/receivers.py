"""Who is told of alerts beside the board's own topic: other topics, and addresses on the web."""

from __future__ import annotations

import hashlib
import hmac
import http.client
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from confluent_kafka import KafkaException, Producer

import liveboard
from liveboard.config import Secret
from liveboard.contract.errors import LiveboardError
from liveboard.redirects import NoRedirects

SIGNATURE_HEADER = "Liveboard-Signature"
DELIVERY_HEADER = "Liveboard-Delivery"
TOPIC = "topic:"
_TIMEOUT_S = 10.0
_FLUSH_S = 30.0
# These are about what was sent, and sending it again changes nothing; all others are about the receiver.
_ABOUT_THE_RECORD = (400, 413, 415, 422)


class AlertRecord(NamedTuple):
    """A record of the alerts topic; its place there names it for ever."""

    place: str
    key: bytes
    value: bytes


class NotReceived(LiveboardError):
    """A receiver did not take a record; `is_final` if it never will."""

    def __init__(self, message: str, is_final: bool = False) -> None:
        super().__init__(message)
        self.is_final = is_final


class Receiver(Protocol):
    """Takes records, in order, so many at once; a NotReceived says why it did not."""

    name: str
    """For people; without what may be secret in an address."""
    at_once: int

    def send(self, records: Sequence[AlertRecord]) -> None:
        """Returns once all of them are there."""


class TopicReceiver:
    """Another Kafka topic, which gets the same records."""

    at_once = 1_000

    def __init__(self, client_config: Mapping[str, str], topic: str) -> None:
        self.name = f"the topic {topic}"
        self._topic = topic
        options: dict[str, Any] = {"enable.idempotence": "true", "log_level": 0, "error_cb": lambda _: None}
        self._producer = Producer({**client_config, **options, "message.timeout.ms": str(int(_FLUSH_S * 1000))})

    def send(self, records: Sequence[AlertRecord]) -> None:
        """Writes them."""
        errors: list[str] = []
        try:
            for record in records:
                self._producer.produce(
                    self._topic,
                    record.value,
                    record.key,
                    on_delivery=lambda error, _: errors.append(error.str()) if error else None,
                )
            left = self._producer.flush(_FLUSH_S)
        except (KafkaException, BufferError) as error:
            raise NotReceived(f"{self.name} takes nothing: {error}") from error
        if left or errors:
            raise NotReceived(f"{self.name} takes nothing: {errors[0] if errors else 'no answer'}")


class Webhook:
    """An address that gets each record as a POST, signed where there is a secret."""

    at_once = 1

    def __init__(self, url: str, secret: Secret) -> None:
        parts = urllib.parse.urlsplit(url)
        self.name = f"{parts.scheme}://{parts.hostname}"
        self._url = url
        self._secret = secret.reveal().encode()
        self._opener = urllib.request.build_opener(NoRedirects)

    def send(self, records: Sequence[AlertRecord]) -> None:
        """Posts them one by one."""
        for record in records:
            self._post(record)

    def _post(self, record: AlertRecord) -> None:
        headers = {
            "Content-Type": "application/json",
            "User-Agent": f"liveboard/{liveboard.__version__}",
            DELIVERY_HEADER: record.place,
        }
        if self._secret:
            headers[SIGNATURE_HEADER] = signature(self._secret, record.value)
        request = urllib.request.Request(self._url, record.value, headers, method="POST")
        try:
            with self._opener.open(request, timeout=_TIMEOUT_S) as answer:
                answer.read(1)
        except urllib.error.HTTPError as error:
            with error:
                is_final = error.code in _ABOUT_THE_RECORD
                raise NotReceived(f"{self.name} answers {error.code} {error.reason}", is_final) from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise NotReceived(f"{self.name} does not answer: {getattr(error, 'reason', error)}") from None


def signature(secret: bytes, body: bytes) -> str:
    """What the header says of a body: whoever has the secret can tell that we have sent it."""
    return f"sha256={hmac.new(secret, body, hashlib.sha256).hexdigest()}"
