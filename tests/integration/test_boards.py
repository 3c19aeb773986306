"""B35: several boards on one cluster, each with one owner."""

from __future__ import annotations

from contextlib import ExitStack, closing
from pathlib import Path
from random import Random

import pytest
from harness import emptied, until
from swapping import Swapping, wiring

from liveboard.contract.board import Wiring
from liveboard.orchestrator.ownership import decoded

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1800)]


def test_b35_two_boards_on_one_broker_swap_and_crash_at_random(kafka: str, tmp_path: Path) -> None:
    random = Random(16)
    with emptied(kafka), ExitStack() as parts:
        boards: list[tuple[Swapping, list[int]]] = []
        for name, numbers in (("first", [1, 2]), ("first-status", [3, 4])):
            (tmp_path / name).mkdir()
            board = parts.enter_context(closing(Swapping(kafka, tmp_path / name, name)))
            boards.append((board, [0, *numbers]))
        for number in range(5):
            boards[0][0].fill(number)
        for board, _ in boards:
            board.start()
        wanted: list[Wiring] = [wiring(0), wiring(0)]
        for board, _ in boards:
            board.wait_until_live(wiring(0))
        for _ in range(6):
            place = random.randrange(2)
            board, numbers = boards[place]
            if random.random() < 0.5:
                wanted[place] = wiring(random.choice(numbers), random.choice(["left", "inner", "asof"]))
                board.ask(wanted[place])
            else:
                board.pipeline.kill(random.choice(["python", "java"]))
                board.pipeline.start()
            boards[0][0].fill(random.randrange(5))
        for (board, _), expected in zip(boards, wanted, strict=True):
            board.expect_oracle(board.wait_until_live(expected))
            board.wait_for(lambda status: all(r.state in ("live", "retiring") for r in status.generations.values()))
            board.expect_nothing_left_behind()
        assert not {r.wiring.topics["users"] for r in boards[0][0].status().generations.values()} & {"users3", "users4"}


def test_b35_another_owner_is_refused_and_of_those_that_stand_by_one_takes_over_after_a_silence(
    kafka: str, tmp_path: Path
) -> None:
    shared = {"LIVEBOARD_STORAGE_CHECKPOINTS": str(tmp_path / "shared")}
    names = ("first", "second", "third")
    with emptied(kafka), ExitStack() as parts:
        for name in names:
            (tmp_path / name).mkdir()
        first, second, third = (
            parts.enter_context(closing(Swapping(kafka, tmp_path / name, **shared))) for name in names
        )
        first.fill(0)
        first.start()
        live = first.wait_until_live(wiring(0))
        second.start()
        until(lambda: not second.pipeline.is_running(), "the second one's end")
        assert "the board 'liveboard' is kept by " in second.pipeline.said()
        assert str(tmp_path / "first") in second.pipeline.said()
        second.pipeline.start("--standby")
        third.start("--standby")
        for standby in (second, third):
            standby.pipeline.wait_for("standing by: the board 'liveboard' is kept by ")

        # Of two that wait, one goes on from the checkpoint of the one that is gone, and the other waits for its end.
        with second.load(0, 40):
            first.pipeline.kill("")
            until(lambda: any(_follows(board, live) for board in (second, third)), "a take-over")
            taker, waiting = (second, third) if _follows(second, live) else (third, second)
            waiting.pipeline.wait_for(f"standing by: the board 'liveboard' is kept by {_name(taker)} ")
        second.expect_oracle(live)
        assert "building" not in taker.pipeline.said()
        assert "[orchestrator] ready" not in waiting.pipeline.said()
        assert waiting.pipeline.is_running()

        # Whoever was replaced ends as soon as it finds out.
        with second.load(0, 40):
            paused = taker.pipeline.pause()
            waiting.pipeline.wait_for(f"{live} is live")
            assert "building" not in waiting.pipeline.said()
            for process in paused:
                process.resume()
            until(lambda: not taker.pipeline.is_running(), "the end of the one that was replaced")
            assert f"is kept by {_name(waiting)}" in taker.pipeline.said()
            # What that one may have written after it was replaced cannot be told apart any more.
            waiting.pipeline.wait_for("was still alive after it was replaced")
            waiting.wait_for(lambda status: status.live not in (None, live) and status.phase == "live")
        waiting.expect_oracle(waiting.wait_until_live(wiring(0)))

        # Whoever stops leaves the board free at once.
        waiting.pipeline.stop()
        *_, last = waiting.topics.messages(waiting.names.owner)
        assert (decoded(last.value()).what, decoded(last.value()).name) == ("release", _name(waiting))


def _follows(board: Swapping, generation: str) -> bool:
    return f"{generation} is live" in board.pipeline.said()


def _name(owner: Swapping) -> str:
    """What the board's owner calls itself."""
    found = owner.status().owner
    assert found
    assert str(owner.pipeline.storage) in found.name
    return found.name
