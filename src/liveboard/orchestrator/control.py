"""Control messages: reading them, and judging what they ask for.

The short form names a topic per source and the kind of the board's first join:

    {"usersTopic": "users-2026", "accountsTopic": "accounts-2026", "joinType": "inner"}

Without `joinType` that join is a left join. The general form can name every join; those that it leaves out are as
configured:

    {"topics": {"users": "users-2026", "accounts": "accounts-2026"}, "joins": {"final_ui": "inner"}}

Both name the topics of all sources. Fields that are not known are ignored.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any, NamedTuple, Self

import orjson
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka import Message as KafkaMessage

from liveboard.config import Board
from liveboard.config_document import nearest
from liveboard.config_values import TOPIC
from liveboard.contract.changelog import timestamp_text
from liveboard.contract.status import Wiring
from liveboard.errors import LiveboardError
from liveboard.kafka import trouble
from liveboard.kafka.admin import Admin
from liveboard.kafka.reader import REFUSED, consumer_config

JOIN_KINDS = ("left", "inner", "asof")
_DEFAULT_KIND = "left"
_BATCH = 1_000
_PATIENCE_S = 30.0
_WAIT_S = 0.1
_ASK_S = 1.0
_SHOWN_CHARACTERS = 100


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
        # The client says once that it is refused, and never that it is not any more.
        if any(error.code() in REFUSED for message in found if (error := message.error())):
            self.problem = trouble.permission([self.topic], "read")
        elif self.problem and time.monotonic() > self._ask_at:
            self._ask_at = time.monotonic() + _ASK_S
            with contextlib.suppress(trouble.KafkaUnavailable):
                self.problem = self.problem if self._admin.unreadable([self.topic]) else ""


def _age(message: Message) -> tuple[str, int, int]:
    return message.ts, message.partition, message.offset


def judge(value: bytes | None, board: Board, control_topic: str) -> Wiring:
    """The wiring that a control message asks for; a LiveboardError says what is wrong with the message."""
    document = _document(value)
    general = document.keys() & {"topics", "joins"}
    topics, joins = _general_form(document, board) if general else _short_form(document, board)
    wiring = Wiring({at.source: _topic(at, found) for at, found in topics.items()}, joins)
    _check_distinct(list(topics), wiring, control_topic)
    return wiring


def kind_of_join(at: str, found: object) -> str:
    """The kind of join that a word means: in any case, with blanks around it, or only beginning with "inner"."""
    word = found.strip().lower() if isinstance(found, str) else found
    if word in (None, ""):
        return _DEFAULT_KIND
    kind = "inner" if isinstance(word, str) and word.startswith("inner") else word
    if not isinstance(kind, str) or kind not in JOIN_KINDS:
        raise LiveboardError(f"{at}: expected left, inner or asof, found {_shown(found)}")
    return kind


class _At(NamedTuple):
    """Where a message names a source's topic."""

    source: str
    field: str


def _document(value: bytes | None) -> dict[str, Any]:
    if value is None:
        raise LiveboardError("expected a JSON object, found a message without a value")
    document: Any = None
    with contextlib.suppress(orjson.JSONDecodeError):
        document = orjson.loads(value)
    if not isinstance(document, dict):
        raise LiveboardError(f"expected a JSON object, found {_cut(value.decode(errors='replace'))}")
    return document


def _short_form(document: Mapping[str, Any], board: Board) -> tuple[dict[_At, Any], dict[str, str]]:
    fields = [_At(name, f"{name}Topic") for name in board.sources]
    joins: dict[str, str] = {name: join.how for name, join in board.joins.items()}
    for first in list(joins)[:1]:
        joins[first] = kind_of_join("joinType", document.get("joinType"))
    return {at: document.get(at.field) for at in fields}, joins


def _general_form(document: Mapping[str, Any], board: Board) -> tuple[dict[_At, Any], dict[str, str]]:
    topics = _names("topics", document.get("topics"), board.sources)
    asked = _names("joins", document.get("joins", {}), board.joins)
    joins: dict[str, str] = {name: join.how for name, join in board.joins.items()}
    joins |= {name: kind_of_join(f"joins.{name}", found) for name, found in asked.items()}
    return {_At(name, f"topics.{name}"): topics.get(name) for name in board.sources}, joins


def _names(at: str, found: object, known: Iterable[str]) -> dict[str, Any]:
    """An object whose names are all known."""
    if not isinstance(found, dict):
        raise LiveboardError(f"{at}: expected an object, found {_shown(found)}")
    for name in found:
        if name not in known:
            expected = f"expected one of {', '.join(known)}, found {_shown(name)}, did you mean {nearest(name, known)}?"
            raise LiveboardError(f"{at}: {expected}" if known else f"{at}: expected nothing, found {_shown(name)}")
    return found


def _topic(at: _At, found: object) -> str:
    if found is None:
        raise LiveboardError(f"{at.field}: expected a topic name, found nothing")
    try:
        return str(TOPIC.read(found.strip() if isinstance(found, str) else found))
    except LiveboardError as error:
        raise LiveboardError(f"{at.field}: {error}") from None


def _check_distinct(fields: Iterable[_At], wiring: Wiring, control_topic: str) -> None:
    first: dict[str, str] = {control_topic: "control.topic"}
    for at in fields:
        topic = wiring.topics[at.source]
        other = first.setdefault(topic, at.field)
        if other != at.field:
            raise LiveboardError(f"{at.field}: expected a topic of its own, found {_shown(topic)} as in {other}")


def _shown(found: object) -> str:
    return "nothing" if found is None else _cut(orjson.dumps(found).decode())


def _cut(text: str) -> str:
    """One line of text that cannot steer a terminal."""
    printable = "".join(c if c.isprintable() else "·" for c in text[:_SHOWN_CHARACTERS])
    return printable if len(text) <= _SHOWN_CHARACTERS else printable + "…"
