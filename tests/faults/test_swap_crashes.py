"""B15, B16: kill -9 of the orchestrator in every state of a swap; the next one ends with the right wiring live.

One board goes through all of them, since every start of a pipeline takes its time; each test also runs alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from harness import until
from swapping import Swapping, swapping, wiring

from liveboard.contract.board import Wiring
from liveboard.contract.status import BoardStatus, State

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1200)]

RETIRE_AFTER = "LIVEBOARD_CONTROL_RETIRE_AFTER"
# Enough for a build that takes a moment; half of their keys have more records of a side than are remembered.
_BUILT, _KEYS, _REMEMBERED = 12_000, 1_000, 5


@pytest.fixture(scope="module")
def board(kafka: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Swapping]:
    """A board that has just been started."""
    with swapping(kafka, tmp_path_factory.mktemp("swaps"), **{RETIRE_AFTER: "1 s"}) as board:
        joins = {name: replace(join, history=_REMEMBERED) for name, join in board.board.joins.items()}
        board.board = replace(board.board, joins=joins)
        board.start()
        yield board


def _has(state: State) -> Callable[[BoardStatus], bool]:
    return lambda status: any(record.state is state for record in status.generations.values())


def _restart(board: Swapping, retire_after: str = "") -> None:
    board.pipeline.kill("python")
    if retire_after:
        board.pipeline.environment[RETIRE_AFTER] = retire_after
    board.pipeline.start()


def _live(board: Swapping, retire_after: str) -> str:
    """The generation that is live, as soon as nothing is being done, in a pipeline that keeps others so long."""
    if board.pipeline.environment[RETIRE_AFTER] != retire_after:
        _restart(board, retire_after)
        board.pipeline.wait_until_live()
    return str(board.wait_for(lambda status: status.live and not status.request and status.phase == "live").live)


def _others(board: Swapping) -> Iterator[Wiring]:
    """Wirings that no generation has."""
    taken = [record.wiring for record in board.status().generations.values()]
    every = (wiring(number, join) for join in ("left", "inner") for number in range(3))
    return (each for each in every if each not in taken)


def _own_rows(board: Swapping, generation: str | None) -> int:
    """How many rows of records themselves were written to the generation's changelogs."""
    changelogs = [board.names.changelog(str(generation), name) for name in ("users_ui", "accounts_ui", "rejects_ui")]
    return sum(ends["0"] for ends in board.admin.offsets(dict.fromkeys(changelogs, 1), "latest").values())


def _expect_the_end(board: Swapping, live: str) -> None:
    """What must be true after every crash."""
    for number in range(3):
        board.fill(number)
    for generation in board.states():
        board.expect_oracle(generation)
    assert board.status().live == live
    board.expect_last_applied_only_changed_by_swaps()
    board.expect_nothing_left_behind()
    assert {verdict for verdict, _ in board.verdicts().values()} <= {"applied", "superseded"}


def test_killed_before_anything_was_live(board: Swapping) -> None:
    board.wait_for(_has(State.BUILDING))
    _restart(board)
    assert board.wait_until_live(wiring(0)) == "g1"
    _expect_the_end(board, "g1")


def test_killed_while_building_and_while_a_generation_is_being_removed(board: Swapping) -> None:
    first = _live(board, "1 s")
    board.fill(1, _BUILT, _KEYS)
    board.ask(wiring(1))
    building, _ = board.wait_for(lambda status: status.live == first and status.building[1]).building
    until(lambda: _own_rows(board, building), "rows of the build")
    board.pipeline.kill("java")
    assert _own_rows(board, building) < _BUILT
    board.pipeline.start()
    second = board.wait_until_live(wiring(1))
    assert second == building
    board.wait_for(lambda status: _has(State.CLOSED)(status) or list(status.generations) == [second])
    _restart(board, "1 hour")
    assert board.wait_until_live(wiring(1)) == second
    board.wait_for(lambda status: list(status.generations) == [second])
    _expect_the_end(board, second)
    asked = board.names.repairs(second)
    assert board.admin.offsets({asked: 1}, "latest")[asked]["0"] > 0


def test_killed_while_building_and_asked_for_another_wiring_meanwhile(board: Swapping) -> None:
    first = _live(board, "1 hour")
    before, (asked, other, last) = board.states(), list(_others(board))[:3]
    board.ask(asked)
    building = board.wait_for(_has(State.BUILDING)).newest
    board.pipeline.kill("python")
    board.ask(other)
    board.ask(last)
    board.pipeline.start()
    second = board.wait_until_live(last)
    assert board.states() == {**before, first: "retiring", second: "live"}
    assert second != f"g{building}"
    _expect_the_end(board, second)


def test_killed_after_the_switch_and_while_retiring(board: Swapping) -> None:
    first = _live(board, "1 hour")
    before, of_first, other = board.states(), board.status().generations[first].wiring, next(_others(board))
    board.ask(other)
    status = board.wait_for(lambda status: status.live not in (None, first))
    deadline = status.generations[first].retire_at
    applied = status.last_applied
    _restart(board)
    second = board.wait_until_live(other)
    assert board.states() == {**before, first: "retiring", second: "live"}
    assert board.status().generations[first].retire_at == deadline
    assert board.status().last_applied == applied
    assert "building" not in board.pipeline.said()
    _expect_the_end(board, second)

    # Swapping back is still instant.
    board.ask(of_first)
    assert board.wait_until_live(of_first) == first


def test_killed_after_a_failed_build(board: Swapping) -> None:
    first = _live(board, "1 hour")
    before = board.states()
    obstacle = board.block(f"g{board.status().newest + 1}")
    place = board.ask(next(_others(board)))
    board.wait_for(lambda _: any(map(_has(State.FAILED), board.history())))
    _restart(board)
    board.admin.delete([obstacle])
    board.wait_for(lambda status: board.states() == before and status.phase == "live")
    assert board.verdicts()[place][0] == "failed"
    board.expect_oracle(first)
    board.expect_nothing_left_behind()
