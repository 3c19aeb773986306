"""The life of generations: which moves are allowed, and which one is next. Pure functions of the status document.

    building ──▶ live ──▶ retiring ──▶ closed
        │ │        ▲          │
        │ │        └──────────┘   swapped back
        │ └──▶ closed             no longer asked for
        └────▶ failed

Every function returns the document as it is after the move. A closed or failed generation stays in the document until
nothing of it is left on disk and in Kafka, so that a crash in between is made good by the next start.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from msgspec.structs import replace as changed

from liveboard.config import Duration
from liveboard.contract.board import Board, Wiring
from liveboard.contract.changelog import timestamp_text
from liveboard.contract.names import generation_number
from liveboard.contract.status import BoardStatus, GenerationRecord, Request, State

_MOVES = {
    State.BUILDING: {State.LIVE, State.CLOSED, State.FAILED},
    State.LIVE: {State.RETIRING, State.CLOSED},
    State.RETIRING: {State.LIVE, State.CLOSED},
    State.CLOSED: set[State](),
    State.FAILED: set[State](),
}


class Do(Enum):
    """What can be next."""

    BUILD = auto()
    """Begin a generation of the target wiring."""
    SWITCH = auto()
    """Make a retiring generation live again."""
    CLOSE = auto()
    """A generation is of no use any more."""
    REMOVE = auto()
    """Delete what is left of a closed or failed generation."""
    NOTHING = auto()


@dataclass(frozen=True)
class NextStep:
    """The next thing to do, and to which generation."""

    do: Do
    generation: str = ""


def next_step(status: BoardStatus, target: Wiring, usable: Collection[str], now: float) -> NextStep:
    """What brings the board nearer to the target wiring; `usable` are the generations whose queries can go on."""
    of_target = [name for name, record in status.generations.items() if record.wiring == target and name in usable]
    for name, record in status.generations.items():
        if record.state in (State.CLOSED, State.FAILED):
            return NextStep(Do.REMOVE, name)
        due = record.retire_at is not None and record.retire_at <= now
        if record.state is State.RETIRING and (due or name not in usable):
            return NextStep(Do.CLOSE, name)
        if record.state is State.BUILDING and (name not in of_target or status.live in of_target):
            return NextStep(Do.CLOSE, name)
    if status.live in of_target:
        return NextStep(Do.NOTHING)
    for name in of_target:
        if status.generations[name].state is State.RETIRING:
            return NextStep(Do.SWITCH, name)
    return NextStep(Do.NOTHING) if of_target else NextStep(Do.BUILD)


def target(status: BoardStatus, board: Board) -> Wiring:
    """What the board should be: as asked for, or as asked for before, or as configured."""
    if status.request:
        return status.request.wiring
    return status.applied or board.wiring


def begun(status: BoardStatus, name: str, record: GenerationRecord) -> BoardStatus:
    """With one more generation, which is being built."""
    number = generation_number(name)
    if number <= status.newest or record.state is not State.BUILDING:
        raise ValueError(f"expected a building generation after {status.newest}, found {name}, {record.state}")
    return changed(status, newest=number, generations={**status.generations, name: record})


def switched(
    status: BoardStatus,
    name: str,
    *,
    now: float,
    complete_at: Mapping[str, int],
    retire_after: Duration | None,
    old_usable: bool = True,
) -> BoardStatus:
    """The tables' names now mean this generation; the one before retires, or is closed where it cannot go on."""
    wiring = status.generations[name].wiring
    old = status.generations.get(status.live or "")
    status = _moved(status, name, State.LIVE, complete_at=complete_at, retire_at=None, progress=None)
    if old and status.live:
        retire_at = None if retire_after is None else now + retire_after.milliseconds / 1000
        to = State.RETIRING if old_usable else State.CLOSED
        status = _moved(status, status.live, to, retire_at=retire_at)
    if old is None or old.wiring != wiring:
        status = changed(status, last_applied=timestamp_text(int(now * 1000)))
    applied = status.request.wiring if status.request else status.applied
    return changed(status, live=name, applied=applied, request=None)


def failed(status: BoardStatus, name: str) -> BoardStatus:
    """The build has failed; what was asked for is given up, and what was there before stays."""
    return changed(_moved(status, name, State.FAILED, progress=None), request=None)


def closed(status: BoardStatus, name: str) -> BoardStatus:
    """The generation is of no use any more."""
    return _moved(status, name, State.CLOSED, progress=None)


def removed(status: BoardStatus, name: str) -> BoardStatus:
    """Nothing of the generation is left."""
    state = status.generations[name].state
    if _MOVES[state]:
        raise ValueError(f"expected {name} to be closed or failed before it is removed, found it {state}")
    generations = {other: record for other, record in status.generations.items() if other != name}
    return changed(status, generations=generations)


def requested(status: BoardStatus, request: Request) -> BoardStatus:
    """A newer control message is to be carried out, if it asks for anything other than what is live."""
    live = status.generations.get(status.live or "")
    if live and live.wiring == request.wiring:
        return changed(status, request=None, applied=request.wiring)
    return changed(status, request=request)


def _moved(status: BoardStatus, name: str, to: State, **changes: Any) -> BoardStatus:
    record = status.generations[name]
    if to not in _MOVES[record.state]:
        raise ValueError(f"expected a move of {name} from {record.state} to {_list(_MOVES[record.state])}, found {to}")
    moved = changed(record, state=to, **changes)
    return changed(status, generations={**status.generations, name: moved})


def _list(states: Collection[State]) -> str:
    return " or ".join(sorted(states)) or "nothing"
