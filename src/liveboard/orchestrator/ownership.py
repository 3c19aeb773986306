"""One owner at a time: who keeps a board is decided by the order of the records in one small topic.

Whoever wants the board writes a claim, and then reads the topic up to it. A claim counts if nobody keeps the board, or
if whoever keeps it has been silent for a while by the clock of the broker, or has the same storage and so began again
after a crash. Everyone who reads the same records comes to the same answer, so of two that claim at once, one loses.
Whoever keeps the board goes on to say so, and reads on: someone may have taken it while this machine was asleep.
"""

from __future__ import annotations

import contextlib
import math
import socket
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Literal, Self
from uuid import uuid4

import msgspec
from confluent_kafka import KafkaException, Producer

from liveboard.config.storage import storage_id
from liveboard.contract.changelog import timestamp_text
from liveboard.contract.errors import LiveboardError
from liveboard.contract.names import Names
from liveboard.contract.status import BEAT_S, STALE_AFTER_S, Owner
from liveboard.kafka.reader import ChangelogReader

_PATIENCE_S = 30.0
_WAIT_S = 0.2
# So long after a beat nobody else can have the board, with time for what is on its way: others wait STALE_AFTER_S.
_LEASE_S = 8.0


class OwnershipLost(LiveboardError):
    """Somebody else keeps the board now."""


class Saying(msgspec.Struct, frozen=True):
    """A record of the topic."""

    what: Literal["claim", "beat", "release"]
    owner: str
    run: str
    """Of one process from its claim to its end."""
    name: str


@dataclass(frozen=True)
class Holder:
    """Who keeps the board, as of some record of the topic."""

    said: Saying
    since_ms: int
    heard_ms: int


def held(holder: Holder | None, said: Saying, at_ms: int) -> Holder | None:
    """Who keeps the board after one more record."""
    if holder and holder.said.run == said.run:
        return None if said.what == "release" else replace(holder, heard_ms=at_ms)
    if said.what != "claim":
        return holder
    silent = holder is None or at_ms - holder.heard_ms >= STALE_AFTER_S * 1000
    is_free = silent or (holder is not None and holder.said.owner == said.owner)
    return Holder(said, at_ms, at_ms) if is_free else holder


class Ownership:
    """Takes the board when it is entered, keeps it, and gives it back; a LiveboardError says who has it already."""

    def __init__(self, client_config: Mapping[str, str], names: Names, directory: Path) -> None:
        self._client_config = client_config
        self._names = names
        self._me = Saying("claim", storage_id(directory), uuid4().hex, f"{socket.gethostname()}:{directory}")
        self._holder: Holder | None = None
        self._now_ms = 0
        self._next = 0
        self._lock = threading.Lock()
        self._said: tuple[int, float] | None = None
        self._sure_s = -math.inf
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="ownership", daemon=True)

    def __enter__(self) -> Self:
        # Nothing is sent twice or late out of a queue: a claim that is not answered is made anew.
        limits = {"enable.idempotence": "true", "linger.ms": "0", "message.timeout.ms": "4000"}
        self._producer = Producer({**self._client_config, **limits, "log_level": 0})
        self._reader = ChangelogReader(self._client_config, [self._names.owner]).__enter__()
        try:
            self._claim()
        except BaseException:
            self._reader.__exit__(None, None, None)
            raise
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._ending.set()
        self._thread.join()
        # After an error the next one is most likely started here, and does not wait for it.
        if kind is None:
            with contextlib.suppress(LiveboardError):
                self._say("release")
        self._reader.__exit__(None, None, None)

    @property
    def owner(self) -> Owner:
        """Who we are, for the status document."""
        return Owner(self._me.owner, self._me.name, self._holder.since_ms if self._holder else 0)

    def check(self) -> None:
        """An OwnershipLost if somebody else keeps the board now."""
        self._listen(0)
        if self._holder is None or self._holder.said.run != self._me.run:
            raise OwnershipLost(f"stopped, since {self._description()}")

    def is_sure(self) -> bool:
        """Whether nobody else can keep the board in the next few seconds, also where we have been asleep.

        An OwnershipLost if somebody else keeps it now.
        """
        self.check()
        return _now_s() - self._sure_s < _LEASE_S

    def _claim(self) -> None:
        offset = self._say("claim")
        deadline = time.monotonic() + _PATIENCE_S
        while self._next <= offset:
            self._listen(_WAIT_S)
            if time.monotonic() > deadline:
                raise LiveboardError(f"expected {self._names.owner} to be readable up to {offset}, found {self._next}")
        if self._holder is None or self._holder.said.run != self._me.run:
            raise LiveboardError(
                f"{self._description()}: stop that one, or give this board another name (board.name); once that one "
                f"has been silent for {STALE_AFTER_S:.0f} s, its board can be taken over"
            )

    def _description(self) -> str:
        board = f"the board {self._names.board!r}"
        if self._holder is None:
            return f"{board} was given up by its owner"
        since, silence = timestamp_text(self._holder.since_ms), (self._now_ms - self._holder.heard_ms) / 1000
        return f"{board} is kept by {self._holder.said.name} since {since} (heard {silence:.0f} s ago)"

    def _listen(self, timeout_s: float) -> None:
        with self._lock:
            said = self._said
            for change in self._reader.read(timeout_s):
                self._next, self._now_ms = change.offset + 1, change.timestamp_ms
                if change.value:
                    saying = msgspec.json.decode(change.value, type=Saying)
                    self._holder = held(self._holder, saying, change.timestamp_ms)
            # What we said counts from when we began to say it, once we have read that nobody came before it.
            if said and self._next > said[0] and self._holder and self._holder.said.run == self._me.run:
                self._sure_s = said[1]

    def _beat(self) -> None:
        while not self._ending.wait(BEAT_S):
            # While Kafka is away nobody else can take the board either; if somebody could, `check` tells.
            with contextlib.suppress(LiveboardError):
                self._say("beat")

    def _say(self, what: Literal["claim", "beat", "release"]) -> int:
        """Writes a record; returns its offset. A LiveboardError if Kafka does not take it."""
        began_s = _now_s()
        offsets: list[int | None] = []
        errors: list[str] = []
        message = msgspec.json.encode(msgspec.structs.replace(self._me, what=what))
        try:
            self._producer.produce(
                self._names.owner,
                message,
                self._me.owner.encode(),
                on_delivery=lambda error, sent: errors.append(error.str()) if error else offsets.append(sent.offset()),
            )
            self._producer.flush(_PATIENCE_S)
        except KafkaException as error:
            errors.append(str(error))
        if not offsets or offsets[0] is None:
            raise LiveboardError(f"cannot write to {self._names.owner}: {'; '.join(errors) or 'no answer'}")
        self._said = (offsets[0], began_s)
        return offsets[0]


def _now_s() -> float:
    """A clock that goes on while the machine sleeps, where there is one."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))
