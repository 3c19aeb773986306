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
from liveboard.contract.status import Owner
from liveboard.kafka.reader import ChangelogReader

_BEAT_S = 1.0
# An owner that was silent for so long can be replaced. What takes over has its own start after that, and a standby is
# to be there within 15 s of a crash.
SILENCE_S = 7.0
# So long after a beat nobody else can have the board. The alerts' producer gives up what it has not sent within 3 s:
# what an owner began to write while it was sure is in Kafka, or will never be, before another can be there.
_LEASE_S = 3.0
_PATIENCE_S = 30.0
_WAIT_S = 0.2


class KeptByAnother(LiveboardError):
    """Somebody else keeps the board."""


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
    silent = holder is None or at_ms - holder.heard_ms >= SILENCE_S * 1000
    is_free = silent or (holder is not None and holder.said.owner == said.owner)
    return Holder(said, at_ms, at_ms) if is_free else holder


class Ownership:
    """Takes the board when it is entered, keeps it, and gives it back; a `KeptByAnother` says who has it already."""

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
        self._survivor = ""
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
        # After an error the next one is most likely started here, and does not wait for it. Whoever was replaced says
        # that it was still alive: see `survivor`.
        if kind is None or issubclass(kind, OwnershipLost):
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
        if not self._is_mine():
            raise OwnershipLost(f"stopped, since {described(self._names, self._holder, self._now_ms)}")

    def survivor(self) -> str:
        """Who said something after we had replaced it, and so may have written rows meanwhile; empty if nobody did."""
        return self._survivor

    def is_sure(self) -> bool:
        """Whether nobody else can keep the board in the next few seconds, also where we have been asleep.

        An OwnershipLost if somebody else keeps it now.
        """
        self.check()
        return now_s() - self._sure_s < _LEASE_S

    def _claim(self) -> None:
        offset = self._claimed()
        deadline = time.monotonic() + _PATIENCE_S
        while self._next <= offset:
            self._listen(_WAIT_S)
            if time.monotonic() > deadline:
                raise LiveboardError(f"expected {self._names.owner} to be readable up to {offset}, found {self._next}")
        if not self._is_mine():
            who = described(self._names, self._holder, self._now_ms)
            raise KeptByAnother(
                f"{who}: stop that one, wait for its end with --standby, or give this board another name (board.name); "
                f"once that one has been silent for {SILENCE_S:.0f} s, its board can be taken over"
            )

    def _claimed(self) -> int:
        """Says it until Kafka has it: a client that was just made may need its time until it is let in."""
        deadline = time.monotonic() + _PATIENCE_S
        while True:
            try:
                return self._say("claim")
            except LiveboardError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(_WAIT_S)

    def _is_mine(self) -> bool:
        return self._holder is not None and self._holder.said.run == self._me.run

    def _listen(self, timeout_s: float) -> None:
        with self._lock:
            said = self._said
            for change in self._reader.read(timeout_s):
                self._next, self._now_ms = change.offset + 1, change.timestamp_ms
                if change.value:
                    saying = decoded(change.value)
                    self._holder = held(self._holder, saying, change.timestamp_ms)
                    if self._is_mine() and saying.what != "claim" and saying.run != self._me.run:
                        self._survivor = saying.name
            # What we said counts from when we began to say it, once we have read that nobody came before it.
            if said and self._next > said[0] and self._is_mine():
                self._sure_s = said[1]

    def _beat(self) -> None:
        while not self._ending.wait(_BEAT_S):
            # While Kafka is away nobody else can take the board either; if somebody could, `check` tells.
            with contextlib.suppress(LiveboardError):
                self._say("beat")

    def _say(self, what: Literal["claim", "beat", "release"]) -> int:
        """Writes a record; returns its offset. A LiveboardError if Kafka does not take it."""
        began_s = now_s()
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


def described(names: Names, holder: Holder | None, now_ms: int) -> str:
    """Who keeps the board, in words."""
    board = f"the board {names.board!r}"
    if holder is None:
        return f"{board} was given up by its owner"
    since, silence = timestamp_text(holder.since_ms), (now_ms - holder.heard_ms) / 1000
    return f"{board} is kept by {holder.said.name} since {since} (heard {silence:.0f} s ago)"


def decoded(record: bytes) -> Saying:
    """A record of the topic."""
    return msgspec.json.decode(record, type=Saying)


def now_s() -> float:
    """A clock that goes on while the machine sleeps, where there is one."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))
