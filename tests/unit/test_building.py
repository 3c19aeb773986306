"""When the tables of a build may be shown, and what the board says meanwhile."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from liveboard.config import default_board
from liveboard.contract.board import Board
from liveboard.contract.status import BoardStatus, GenerationRecord, Phase, Progress, State
from liveboard.contract.tables import table_columns
from liveboard.orchestrator.building import Builds
from liveboard.orchestrator.orchestrator import Orchestrator

BOARD = default_board()
ENDS = {"users_ui": 100, "final_ui": 100}


class Running(dict[str, Any]):
    """Generations of which none follows."""

    following: frozenset[str] = frozenset()

    def is_held_up(self, name: str) -> bool:
        return False


def by_key() -> Board:
    """The default board with its accounts, which are counted, as a table by key."""
    accounts = replace(BOARD.sources["accounts"], mode="upsert", key=("userId",))
    return replace(BOARD, sources={**BOARD.sources, "accounts": accounts})


def built(board: Board, live: str | None, *, is_written: bool) -> BoardStatus:
    """The document after two looks at a build of g2 that still remembers records."""
    generation = SimpleNamespace(is_built=lambda: False, is_written=lambda: is_written, part_built=lambda: 0.75)
    record = GenerationRecord(
        state=State.BUILDING, wiring=board.wiring, tables=table_columns(board), progress=Progress(0, 1_000, 0.0)
    )
    work: Any = SimpleNamespace(
        board=board,
        status=BoardStatus(sources=("users",), live=live, generations={"g2": record}, phase=Phase.BUILDING),
        running=Running(g2=generation),
        ends=lambda name: ENDS,
        log=lambda line: None,
    )
    work.keep = lambda status: setattr(work, "status", status)
    builds = Builds(work, repairing=SimpleNamespace(), counting=SimpleNamespace())  # type: ignore[arg-type]
    assert not builds.is_complete("g2")
    first: BoardStatus = work.status
    builds._progress_at = 0.0
    assert not builds.is_complete("g2")
    assert (work.status.phase, work.status.shown) == (first.phase, first.shown)
    status: BoardStatus = work.status
    return status


@pytest.mark.parametrize(
    ("live", "is_written", "shown", "phase"),
    [
        ("g1", False, "g1", Phase.BUILDING),
        ("g1", True, "g2", Phase.CATCHING_UP),
        (None, False, None, Phase.BUILDING),
        (None, True, "g2", Phase.BUILDING),
    ],
)
def test_b15_a_build_is_shown_when_its_rows_are_written_and_live_when_it_follows(
    live: str | None, is_written: bool, shown: str | None, phase: Phase
) -> None:
    status = built(BOARD, live, is_written=is_written)
    assert (status.live, status.shown, status.phase) == (live, shown, phase)
    assert status.generations["g2"].complete_at == (ENDS if is_written else {})
    said = "g2 is shown and soon follows" if phase is Phase.CATCHING_UP else "building g2"
    assert status.message.startswith(f"{said}: 75 % of 1,000 records")


def test_a_swap_whose_totals_are_made_from_its_tables_is_shown_only_when_they_are_complete() -> None:
    assert built(by_key(), "g1", is_written=True).shown == "g1"
    assert built(by_key(), None, is_written=True).shown == "g2"


def test_b15_a_build_whose_java_is_gone_has_not_failed() -> None:
    def is_built() -> bool:
        raise ConnectionRefusedError

    record = GenerationRecord(state=State.BUILDING, wiring=BOARD.wiring, tables={})
    status = BoardStatus(sources=("users",), live="g1", generations={"g2": record})
    work: Any = SimpleNamespace(
        board=BOARD,
        status=status,
        record=SimpleNamespace(),
        running=Running(g2=SimpleNamespace(is_built=is_built)),
        usable={"g2"},
        leftovers=SimpleNamespace(taken_up=lambda status, board: status, sweep=lambda status: None),
    )
    orchestrator = Orchestrator(work, SimpleNamespace(is_sure=lambda: True))  # type: ignore[arg-type]
    with pytest.raises(ConnectionRefusedError):
        orchestrator._advance_build()
