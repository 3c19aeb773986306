"""B35: several boards on one cluster, each with one owner."""

from __future__ import annotations

from contextlib import ExitStack, closing
from pathlib import Path
from random import Random

import pytest
from harness import emptied, until
from swapping import Swapping, wiring

from liveboard.contract.board import Wiring

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


def test_b35_another_owner_is_refused_or_stands_by_and_takes_over_after_a_silence(kafka: str, tmp_path: Path) -> None:
    shared = {"LIVEBOARD_STORAGE_CHECKPOINTS": str(tmp_path / "shared")}
    with emptied(kafka), ExitStack() as parts:
        first, second = (
            parts.enter_context(closing(Swapping(kafka, tmp_path / name, **shared))) for name in ("first", "second")
        )
        for name in ("first", "second"):
            (tmp_path / name).mkdir()
        first.fill(0)
        first.start()
        live = first.wait_until_live(wiring(0))
        second.start()
        until(lambda: not second.pipeline.is_running(), "the second one's end")
        assert "the board 'liveboard' is kept by " in second.pipeline.said()
        assert str(tmp_path / "first") in second.pipeline.said()
        second.pipeline.start("--standby")
        second.pipeline.wait_for("standing by: the board 'liveboard' is kept by ")
        with first.load(0, 40):
            paused = first.pipeline.pause()
            # It goes on from the shared checkpoint of the one that is silent.
            second.pipeline.wait_for(f"{live} is live")
            assert "building" not in second.pipeline.said()
            for process in paused:
                process.resume()
            until(lambda: not first.pipeline.is_running(), "the end of the one that was replaced")
            assert f"is kept by {second.status().owner.name}" in first.pipeline.said()  # type: ignore[union-attr]
            # What that one may have written after it was replaced cannot be told apart any more.
            second.pipeline.wait_for("was still alive after it was replaced")
            second.wait_for(lambda status: status.live not in (None, live) and status.phase == "live")
        second.expect_oracle(second.wait_until_live(wiring(0)))
        # Whoever stops leaves the board free at once.
        first.pipeline.start("--standby")
        first.pipeline.wait_for("standing by: ")
        second.pipeline.stop()
        first.fill(0)
        first.pipeline.wait_until_live()
        assert "building" not in first.pipeline.said()
        first.expect_oracle(first.wait_until_live(wiring(0)))
