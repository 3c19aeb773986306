"""B15, B16: kill -9 of the orchestrator in every state of a swap; the next one ends with the right wiring live."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from swapping import Swapping, swapping, wiring

from liveboard.contract.status import BoardStatus, State

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1200)]


def _has(state: State) -> Callable[[BoardStatus], bool]:
    return lambda status: any(record.state is state for record in status.generations.values())


def _restart(board: Swapping) -> None:
    board.pipeline.kill("python")
    board.pipeline.start()


def _expect_the_end(board: Swapping, live: str) -> None:
    """What must be true after every crash."""
    board.fill(0)
    board.fill(1)
    for generation in board.states():
        board.expect_oracle(generation)
    assert board.status().live == live
    board.expect_last_applied_only_changed_by_swaps()
    board.expect_nothing_left_behind()
    assert {verdict for verdict, _ in board.verdicts().values()} <= {"applied", "superseded"}


def test_killed_before_anything_was_live_and_while_building(kafka: str, tmp_path: Path) -> None:
    with swapping(kafka, tmp_path) as board:
        board.start()
        board.wait_for(_has(State.BUILDING))
        _restart(board)
        first = board.wait_until_live(wiring(0))
        assert first == "g1"

        board.fill(1, 20_000)
        board.ask(wiring(1))
        board.wait_for(lambda status: status.live == first and _has(State.BUILDING)(status))
        _restart(board)
        second = board.wait_until_live(wiring(1))
        assert board.states() == {first: "retiring", second: "live"}
        _expect_the_end(board, second)


def test_killed_while_building_and_asked_for_another_wiring_meanwhile(kafka: str, tmp_path: Path) -> None:
    with swapping(kafka, tmp_path) as board:
        board.start()
        first = board.wait_until_live(wiring(0))
        board.ask(wiring(1))
        building = board.wait_for(_has(State.BUILDING)).newest
        board.pipeline.kill("python")
        board.ask(wiring(2))
        board.ask(wiring(2, "inner"))
        board.pipeline.start()
        second = board.wait_until_live(wiring(2, "inner"))
        assert board.states() == {first: "retiring", second: "live"}
        assert second != f"g{building}"
        _expect_the_end(board, second)


def test_killed_after_the_switch_and_while_retiring(kafka: str, tmp_path: Path) -> None:
    with swapping(kafka, tmp_path, LIVEBOARD_CONTROL_RETIRE_AFTER="1 hour") as board:
        board.start()
        first = board.wait_until_live(wiring(0))
        board.ask(wiring(1))
        status = board.wait_for(lambda status: status.live not in (None, first))
        deadline = status.generations[first].retire_at
        applied = status.last_applied
        _restart(board)
        second = board.wait_until_live(wiring(1))
        assert board.states() == {first: "retiring", second: "live"}
        assert board.status().generations[first].retire_at == deadline
        assert board.status().last_applied == applied
        assert "building" not in board.pipeline.said()
        _expect_the_end(board, second)

        # Swapping back is still instant.
        board.ask(wiring(0))
        assert board.wait_until_live(wiring(0)) == first


def test_killed_while_a_generation_is_being_removed(kafka: str, tmp_path: Path) -> None:
    with swapping(kafka, tmp_path, LIVEBOARD_CONTROL_RETIRE_AFTER="1 s") as board:
        board.start()
        board.wait_until_live(wiring(0))
        board.ask(wiring(1))
        second = board.wait_until_live(wiring(1))
        board.wait_for(lambda status: _has(State.CLOSED)(status) or list(status.generations) == [second])
        _restart(board)
        board.wait_until_live(wiring(1))
        board.wait_for(lambda status: list(status.generations) == [second])
        _expect_the_end(board, second)


def test_killed_after_a_failed_build(kafka: str, tmp_path: Path) -> None:
    with swapping(kafka, tmp_path) as board:
        board.start()
        first = board.wait_until_live(wiring(0))
        obstacle = board.block("g2")
        place = board.ask(wiring(1))
        board.wait_for(lambda _: any(map(_has(State.FAILED), board.history())))
        _restart(board)
        board.admin.delete([obstacle])
        board.wait_for(lambda status: list(status.generations) == [first] and status.phase == "live")
        assert board.verdicts()[place][0] == "failed"
        board.expect_oracle(first)
        board.expect_nothing_left_behind()
