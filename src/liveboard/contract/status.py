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

from liveboard.contract.board import Wiring
from liveboard.contract.changelog import Value, timestamp_text
from liveboard.contract.errors import LiveboardError
from liveboard.contract.schema import TS, Column

STATUS_KEY = b"board"
# The document is repeated this often. One that is much older has no orchestrator any more.
BEAT_S = 5.0
STALE_AFTER_S = 15.0

# One row of the table control_raw per control message; its key is the message's place, partition-offset.
CONTROL_COLUMNS = (
    Column("partition", "int"),
    Column("offset", "bigint"),
    Column("message", "string"),
    Column("verdict", "string"),
    Column("reason", "string"),
    TS,
)

# One row of the table alerts_ui per alert that is raised now: since when the row fulfils the conditions, and when that
# was told.
ALERTS_COLUMNS = (
    Column("alert", "string"),
    Column("table", "string"),
    Column("key", "string"),
    Column("state", "string"),
    Column("since", "timestamp"),
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
    """The document has not been repeated for a while. Readers say so; it is never on record."""
    AWAY = "away"
    """Kafka does not answer. Readers say so; it is never on record."""
    CATCHING_UP = "catching_up"
    """The tables are complete as of a while ago: after a swap, until it follows. Readers also say so of a pipeline that
    is back, while the rows that come are of older records."""


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


class PendingRepairs(msgspec.Struct, frozen=True):
    """Keys whose tables lack rows or show old ones until a repair is done."""

    keys: int
    since: float
    """Since when the first of them waits, in seconds since 1970."""

    @property
    def sentence(self) -> str:
        """For people."""
        keys = "1 key waits" if self.keys == 1 else f"{self.keys:,} keys wait"
        return f"{keys} for a repair, the first since {timestamp_text(int(self.since * 1000))}"


class Lost(msgspec.Struct, frozen=True):
    """Records of a partition that Kafka deleted before they were read."""

    topic: str
    records: int = 0
    """All of them."""
    begin: int = -1
    """Where the newest of them begin."""
    newest: int = 0
    """How many those are."""


class Owner(msgspec.Struct, frozen=True):
    """Who keeps a board."""

    id: str
    """Kept with the storage: whoever starts with the same storage is the same owner."""
    name: str
    """For people: the machine, and where the storage is."""
    since: int
    """When it took the board, in milliseconds since 1970 by Kafka's clock: a later owner has a later one."""


class GenerationRecord(msgspec.Struct, frozen=True, kw_only=True):
    """All that is kept about a generation."""

    state: State
    wiring: Wiring
    tables: Mapping[str, tuple[Column, ...]]
    """The tables it fills, each in its changelog topic, and their columns."""
    complete_at: Mapping[str, int] = {}
    """Up to which offset the changelogs must be read to have everything that the build made; known once its rows are
    written, and readers may show them."""
    progress: Progress | None = None
    retire_at: float | None = None
    """When a retiring generation is closed, in seconds since 1970; None keeps it for ever."""
    repairs: PendingRepairs | None = None
    starting_offsets: Mapping[str, Mapping[str, int]] = {}
    topics: Mapping[str, str] = {}
    """The ids that Kafka gave the sources' topics: one that is deleted and made again has another."""
    lost: Mapping[str, Lost] = {}
    """By topic and partition."""
    fingerprint: Mapping[str, Any] = {}
    """What the checkpoint depends on beside the wiring; the generation can only go on while this is the same."""


class AlertFigures(msgspec.Struct, frozen=True):
    """How an alert is doing; what is counted begins with the owner's process."""

    raised: int = 0
    """Rows that it is raised for now."""
    raises: int = 0
    clears: int = 0
    failures: int = 0
    """Tries to tell a receiver that failed."""
    problem: str = ""
    """Why it is not evaluated, or a receiver is not told; empty while all is well."""


class BoardStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The document of the status topic."""

    sources: tuple[str, ...]
    """The names of the board's sources, in its order."""
    owner: Owner | None = None
    """Who keeps the document; a record's time is that of the owner's last beat."""
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
    alerts: Mapping[str, AlertFigures] = {}
    """The board's alerts, by name; where there are any, there is the table alerts_ui."""
    last_applied: str | None = None
    """When the wiring changed last: ISO-8601, UTC, microseconds."""

    @property
    def shown(self) -> str | None:
        """The generation that readers show: one whose rows are all written, though it does not follow yet, or the live
        one."""
        written = [name for name, r in self.generations.items() if r.state is State.BUILDING and r.complete_at]
        return written[-1] if written else self.live

    @property
    def building(self) -> tuple[str | None, Progress | None]:
        """The newest generation that is being built, and how far it is."""
        found = [(name, record.progress) for name, record in self.generations.items() if record.state is State.BUILDING]
        return found[-1] if found else (None, None)

    def follows(self, before: BoardStatus | None) -> bool:
        """Whether this document counts after the one before: one of an owner who was replaced meanwhile does not."""
        return not (before and before.owner and self.owner and self.owner.since < before.owner.since)

    def encode(self) -> bytes:
        """The value of the status topic's record."""
        return msgspec.json.encode(self)


def decode_status(value: bytes) -> BoardStatus:
    """The document in a record of the status topic."""
    try:
        return msgspec.json.decode(value, type=BoardStatus)
    except msgspec.MsgspecError as error:
        raise LiveboardError(f"expected the status of a board, found: {error}") from None


def gone_stale(status: BoardStatus, kept_ms: int, why: str = "") -> BoardStatus:
    """The document as readers show it when it was kept last too long ago, and why, if they know."""
    message = f"nothing has been heard from the pipeline since {timestamp_text(kept_ms)}"
    message += f": {why}" if why else ""
    message += f"; the last was: {status.message}" if status.message else ""
    return msgspec.structs.replace(status, phase=Phase.STALE, message=message)


def cut_off(status: BoardStatus | None, since_ms: int, why: str) -> BoardStatus:
    """The document as readers show it while Kafka does not answer them; they may never have read one."""
    message = f"Kafka has not answered since {timestamp_text(since_ms)}: {why}"
    return msgspec.structs.replace(status or BoardStatus(sources=()), phase=Phase.AWAY, message=message)


def back_again(status: BoardStatus) -> BoardStatus:
    """The document as readers show it while a pipeline that is back does what it has missed."""
    return msgspec.structs.replace(
        status, phase=Phase.CATCHING_UP, message=status.message or "the pipeline is back and catches up"
    )


def status_columns(sources: tuple[str, ...]) -> tuple[Column, ...]:
    """The columns of the table orchestrator_status: usersTopic, accountsTopic, joinType and so on.

    `building` is the generation that is being built, `built` how many of `toBuild` source records it has.
    """
    topics = [f"{source}Topic" for source in sources]
    names = [*topics, "joinType", "lastApplied", "generation", "phase", "message", "building"]
    columns = [Column(name, "timestamp" if name == "lastApplied" else "string") for name in names]
    return (*columns, Column("built", "bigint"), Column("toBuild", "bigint"), Column("builtPerSecond", "double"))


def status_row(status: BoardStatus) -> tuple[Value, ...]:
    """The one row of the table orchestrator_status; `joinType` is the kind of the board's first join."""
    # The first one is no more than a build until it follows.
    generation = status.shown if status.live else None
    record = status.generations.get(generation or "")
    wiring = record.wiring if record else status.applied
    topics = [wiring.topics.get(source) if wiring else None for source in status.sources]
    join = next(iter(wiring.joins.values()), None) if wiring else None
    repairs = record.repairs.sentence if record and record.repairs else ""
    building, progress = status.building
    numbers = (progress.rows, progress.total, progress.rate) if progress else (None, None, None)
    problems = [figures.problem for figures in status.alerts.values() if figures.problem]
    message = status.message or repairs or (problems[0] if problems else "")
    return (*topics, join, status.last_applied, generation, str(status.phase), message, building, *numbers)
