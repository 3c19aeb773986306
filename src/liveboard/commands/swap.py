"""`liveboard swap`: asks for another wiring and, if wanted, waits for what becomes of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import orjson
from confluent_kafka import KafkaException, Message, Producer

from liveboard.config import Settings
from liveboard.contract.changelog import decode_row
from liveboard.contract.control import control_message, judge
from liveboard.contract.errors import LiveboardError
from liveboard.contract.names import Names
from liveboard.contract.status import CONTROL_COLUMNS
from liveboard.kafka import address, security
from liveboard.kafka.admin import Admin
from liveboard.kafka.board import StatusReader
from liveboard.kafka.reader import ChangelogReader

_SEND_TIMEOUT_S = 30.0
_ORCHESTRATOR_PATIENCE_S = 10.0
_POLL_S = 0.1

Show = Callable[[str], None]


def run(settings: Settings, topics: Mapping[str, str], joins: Mapping[str, str], *, wait: bool, show: Show) -> str:
    """Sends the control message and returns what is to be said at the end; a LiveboardError if it came to nothing.

    What is not named stays as it is. A join named "" is the board's first.
    """
    bootstrap = address.reachable(address.bootstrap(settings))
    client_config = security.librdkafka(settings.kafka, bootstrap)
    names = settings.names
    message = orjson.dumps(control_message(topics, joins))
    # Says now what the pipeline would say of it.
    judge(message, settings.board, settings.board.wiring, names)
    with StatusReader(client_config, names) as reader:
        place = send(client_config, names, message)
        if not wait:
            return f"sent as message {place} of {names.control}: {message.decode()}"
        with ChangelogReader(client_config, [names.verdicts]) as verdicts:
            return _await(reader, verdicts, place, show)


def send(client_config: Mapping[str, str], names: Names, message: bytes) -> str:
    """Writes the message; returns its place, partition-offset."""
    topic = names.control
    Admin(client_config).require([topic])
    places: list[str] = []
    errors: list[str] = []

    def delivered(error: object, sent: Message) -> None:
        if error:
            errors.append(str(error))
        else:
            places.append(f"{sent.partition()}-{sent.offset()}")

    producer = Producer({**client_config, "log_level": 0})
    try:
        producer.produce(topic, message, on_delivery=delivered)
        producer.flush(_SEND_TIMEOUT_S)
    except KafkaException as error:
        errors.append(str(error))
    if not places:
        raise LiveboardError(f"cannot write to the control topic {topic!r}: {'; '.join(errors) or 'no answer'}")
    return places[0]


def _await(reader: StatusReader, verdicts: ChangelogReader, place: str, show: Show) -> str:
    """Follows the message through its verdicts and shows the board's progress meanwhile."""
    heard, started = False, time.monotonic()
    while True:
        for change in verdicts.read(_POLL_S):
            if change.key.decode() != place or not change.value:
                continue
            heard = True
            _, _, _, verdict, reason, _ = decode_row(change.value, CONTROL_COLUMNS)
            if end := outcome(str(verdict), reason):
                _await_switch(reader, place)
                return end
        kept = reader.look()
        if heard and kept and kept.status.message:
            show(kept.status.message)
        elif not heard and time.monotonic() - started > _ORCHESTRATOR_PATIENCE_S:
            show("waiting for a pipeline that reads the control topic")


def outcome(verdict: str, reason: object) -> str:
    """How it ended, empty while it has not; a LiveboardError when it came to nothing."""
    match verdict:
        case "applied":
            return "the board is live with the new wiring"
        case "ignored":
            return f"nothing to do: {reason}"
        case "building":
            return ""
        case _:
            raise LiveboardError(f"the control message was {verdict}: {reason}")


def _await_switch(reader: StatusReader, place: str) -> None:
    """The verdict comes just before the switch; returns when readers see the switch."""
    while (kept := reader.look(_POLL_S)) and (request := kept.status.request):
        if f"{request.partition}-{request.offset}" != place:
            return
