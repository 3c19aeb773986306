"""B15: what fails while building leaves the live generation alone, says why, and the next message works."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from harness import until
from swapping import Swapping, swapping, wiring

from liveboard.contract.status import Phase

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1200)]


def test_a_deleted_topic_and_a_full_disk(kafka: str, tmp_path: Path, small_disk: Callable[[str], Path]) -> None:
    disk = small_disk("2g")
    with swapping(
        kafka,
        tmp_path,
        LIVEBOARD_STORAGE_DIR=str(disk),
        LIVEBOARD_CONTROL_RETIRE_AFTER="0 s",
        LIVEBOARD_SPARK_CHECKPOINT_INTERVAL="5 minutes",
    ) as board:
        board.fill(2, 50_000)
        board.start()
        first = board.wait_until_live(wiring(0))

        place = board.ask(wiring(2))
        board.wait_for(lambda status: "g2" in status.generations and status.generations["g2"].progress)
        board.admin.delete(["users2"])
        _expect_failed(board, place, first)

        _fill(disk)
        place = board.ask(wiring(1))
        assert "No space left on device" in _expect_failed(board, place, first)
        (disk / "ballast").unlink()

        board.fill(0)
        board.expect_oracle(first)
        board.ask(wiring(1))
        second = board.wait_until_live(wiring(1))
        board.expect_oracle(second)
        board.wait_for(lambda status: list(status.generations) == [second])
        board.expect_nothing_left_behind()
        board.pipeline.stop()

        # One that is to go on with too few task slots says so, and does when they are there.
        board.pipeline.environment["LIVEBOARD_SPARK_MASTER"] = "local[5]"
        board.pipeline.start()
        status = board.wait_for(lambda status: status.phase is Phase.RESTARTING)
        assert "s: spark.master: expected at least 6 task slots (one per input and shuffle partition" in status.message
        assert "found 5 at local[5]; give it more cores" in status.message
        board.pipeline.kill("python")
        del board.pipeline.environment["LIVEBOARD_SPARK_MASTER"]

        # A live query that dies, of a checkpoint that it cannot write, starts again when it can.
        board.pipeline.environment["LIVEBOARD_SPARK_CHECKPOINT_INTERVAL"] = "5 s"
        board.pipeline.start()
        board.pipeline.wait_until_live()
        _fill(disk)
        board.fill(1)
        status = board.wait_for(lambda status: status.phase is Phase.RESTARTING)
        assert status.live == second
        assert status.message.startswith(f"{second} starts again in ")
        assert "No space left on device" in status.message
        (disk / "ballast").unlink()
        board.wait_for(lambda status: status.phase is Phase.LIVE)
        board.fill(1)
        board.expect_oracle(second)
        board.pipeline.stop()


def _fill(disk: Path) -> None:
    """Leaves nothing free on the disk."""
    subprocess.run(["dd", "if=/dev/zero", f"of={disk / 'ballast'}", "bs=64k"], stderr=subprocess.DEVNULL)


def _expect_failed(board: Swapping, place: str, live: str) -> str:
    """Waits until the build has failed and nothing is left of it; returns why."""
    until(lambda: board.verdicts().get(place, ("", None))[0] == "failed", "the verdict")
    status = board.wait_for(lambda status: not status.request and list(status.generations) == [live])
    assert (status.live, status.phase) == (live, Phase.LIVE)
    assert status.message.startswith(f"g{status.newest} could not be built: ")
    assert board.verdicts()[place] == ("failed", status.message)
    assert f"[orchestrator] {status.message}\n" in board.pipeline.said()
    return status.message
