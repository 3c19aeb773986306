"""The status topic: which generations there are, and which of them the tables' names mean.

The topic has one partition and one key. Every record is the whole `BoardStatus` as JSON, so the newest record is
all that a reader needs, and a swap is one record: a table's name means the live generation of the newest record,
from that record on and for every reader.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import msgspec

from liveboard.contract.changelog import Value, timestamp_text
from liveboard.contract.names import STATUS_TOPIC
from liveboard.contract.schema import TS, Column
from liveboard.errors import LiveboardError

STATUS_KEY = b"board"
# The document is repeated this often; one that is much older is kept by nobody any more.
BEAT_S = 5.0
STALE_AFTER_S = 15.0

# One row per control message, in the changelog CONTROL_CHANGELOG; its key is the message's place, partition-offset.
CONTROL_COLUMNS = (
    Column("partition", "int"),
    Column("offset", "bigint"),
    Column("message", "string"),
    Column("verdict", "string"),
    Column("reason", "string"),
    TS,
)


class State(StrEnum):
    """What a generation is doing."""

    BUILDING = "building"
    LIVE = "live"
    RETIRING = "retiring"
    CLOSED = "closed"
    FAILED = "failed"


class Phase(StrEnum):
    """What the board as a whole is doing."""

    STARTING = "starting"
    WAITING = "waiting"
    """A topic does not exist yet."""
    BUILDING = "building"
    LIVE = "live"
    RESTARTING = "restarting"
    """A query of the live generation has died; its tables stand still until it is back."""
    FAILED = "failed"
    """Nothing is live, and the last build failed."""
    STALE = "stale"
    """Nobody has kept the document for a while: what readers make of it, never on record."""


class Wiring(msgspec.Struct, frozen=True):
    """Which topic every source reads and how every join joins: what a swap changes."""

    topics: Mapping[str, str]
    joins: Mapping[str, str]


class Request(msgspec.Struct, frozen=True):
    """A control message that is being carried out."""

    wiring: Wiring
    partition: int
    offset: int
    message: str
    ts: str


class Progress(msgspec.Struct, frozen=True):
    """How far a build is, in source records."""

    rows: int
    total: int
    rate: float
    """Records a second."""

    @property
    def percent(self) -> float:
        """Up to 100."""
        return min(100.0, 100.0 * self.rows / self.total) if self.total else 100.0

    @property
    def seconds_left(self) -> float | None:
        """By the rate so far; None while there is none."""
        return max(0, self.total - self.rows) / self.rate if self.rate else None


class GenerationRecord(msgspec.Struct, frozen=True, kw_only=True):
    """All that is kept about a generation."""

    state: State
    wiring: Wiring
    tables: Mapping[str, tuple[Column, ...]]
    """The tables it fills, each in its changelog topic, and their columns."""
    complete_at: Mapping[str, int] = {}
    """Up to which offset the changelogs must be read to have everything that the build made; known once it is live."""
    progress: Progress | None = None
    retire_at: float | None = None
    """When a retiring generation is closed, in seconds since 1970; None keeps it for ever."""
    checkpoint: str = ""
    starting_offsets: Mapping[str, Mapping[str, int]] = {}
    fingerprint: Mapping[str, Any] = {}
    """What the checkpoint depends on beside the wiring; the generation can only go on while this is the same."""


class BoardStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The document of the status topic."""

    sources: tuple[str, ...]
    """The names of the board's sources, in its order."""
    live: str | None = None
    """The generation that the tables' names mean."""
    generations: Mapping[str, GenerationRecord] = {}
    newest: int = 0
    """The number of the newest generation; no number is used twice."""
    applied: Wiring | None = None
    """What the newest control message that was carried out asked for; None while the configuration counts."""
    request: Request | None = None
    """The control message that is being carried out."""
    control: Mapping[str, int] = {}
    """Up to which offset each partition of the control topic has been judged."""
    phase: Phase = Phase.STARTING
    message: str = ""
    last_applied: str | None = None
    """When the wiring changed last: ISO-8601, UTC, microseconds."""

    def encode(self) -> bytes:
        """The value of the status topic's record."""
        return msgspec.json.encode(self)


def decode_status(value: bytes) -> BoardStatus:
    """The document in a record of the status topic."""
    try:
        return msgspec.json.decode(value, type=BoardStatus)
    except msgspec.MsgspecError as error:
        raise LiveboardError(f"{STATUS_TOPIC}: expected the status of a board, found: {error}") from None


def gone_stale(status: BoardStatus, kept_ms: int, why: str = "") -> BoardStatus:
    """The document as readers show it when it was kept last too long ago, and why, if they know."""
    message = f"nothing has been heard from the pipeline since {timestamp_text(kept_ms)}"
    message += f": {why}" if why else ""
    message += f"; the last was: {status.message}" if status.message else ""
    return msgspec.structs.replace(status, phase=Phase.STALE, message=message)


def status_columns(sources: tuple[str, ...]) -> tuple[Column, ...]:
    """The columns of the table orchestrator_status: usersTopic, accountsTopic, joinType and so on."""
    topics = [f"{source}Topic" for source in sources]
    names = [*topics, "joinType", "lastApplied", "generation", "phase", "message"]
    return tuple(Column(name, "timestamp" if name == "lastApplied" else "string") for name in names)


def status_row(status: BoardStatus) -> tuple[Value, ...]:
    """The one row of the table orchestrator_status; `joinType` is the kind of the board's first join."""
    record = status.generations.get(status.live or "")
    wiring = record.wiring if record else status.applied
    topics = [wiring.topics.get(source) if wiring else None for source in status.sources]
    join = next(iter(wiring.joins.values()), None) if wiring else None
    return (*topics, join, status.last_applied, status.live, str(status.phase), status.message)
