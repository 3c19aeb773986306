"""B12 to B18 on a real broker and real Spark: swaps, refusals, bursts, failures, and what is left of them."""

from __future__ import annotations

import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from harness import PATIENCE_S, ROOMY
from process import spark_conf
from swapping import CONTROL_TOPIC, Swapping, swapping, wiring

from liveboard.contract.status import Phase, State

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1200)]

# Enough to be built, so that progress is shown.
_HISTORY = 40_000
# Of the load around a swap; then there is less of it, so that a slow machine comes to its end.
_BUSY_S = 3.0
REJECTED = {
    b"{": "expected a JSON object, found {",
    b'{"users":"users1"}': "expected at least one of usersTopic, accountsTopic, joinType, topics, joins, found none",
    b'{"usersTopic":" ","accountsTopic":"accounts1"}': "usersTopic: expected a topic name",
    b'{"usersTopic":"users1","accountsTopic":"accounts1","joinType":"outer"}': "joinType: expected left, inner or asof",
    b'{"usersTopic":"users1","accountsTopic":"none"}': "expected the Kafka topics ['none']",
}


def test_a_board_through_its_swaps(kafka: str, tmp_path: Path) -> None:
    with swapping(kafka, tmp_path, LIVEBOARD_CONTROL_RETIRE_AFTER="keep") as board:
        board.start()

        # B14, B18: without a control message, the configured topics.
        first = board.wait_until_live(wiring(0))
        lines = board.pipeline.said().splitlines()
        ready = lines.index("[orchestrator] ready")
        assert lines[ready + 1] == f"[orchestrator] control listener on '{CONTROL_TOPIC}'"
        assert "[orchestrator] topics set users='users' accounts='accounts' join='left'" in lines
        board.expect_oracle(first)

        # B15, B16, B18: a swap; both generations go on.
        place = board.ask(wiring(1, "inner"))
        second = board.wait_until_live(wiring(1, "inner"))
        assert board.verdicts()[place] == ("applied", None)
        said = board.pipeline.said()
        assert "[orchestrator] applying control: users='users1', accounts='accounts1', join='inner'\n" in said
        assert "[orchestrator] topics set users='users1' accounts='accounts1' join='inner'\n" in said
        assert board.states() == {first: "retiring", second: "live"}
        for number in (0, 1):
            board.fill(number)
        board.expect_oracle(first)
        board.expect_oracle(second)

        # B13: the live wiring again, and messages that cannot be followed.
        before = board.status()
        places = {board.ask(value): reason for value, reason in REJECTED.items()}
        again = board.ask({"usersTopic": " users1", "accountsTopic": "accounts1", "joinType": " INNER join"})
        board.wait_for(lambda status: status.control["0"] > int(again.split("-")[1]))
        assert board.verdicts()[again] == ("ignored", "this wiring is live already")
        for place, reason in places.items():
            verdict, why = board.verdicts()[place]
            assert verdict == "rejected"
            assert why
            assert why.startswith(reason)
            assert board.pipeline.said().count(f"[orchestrator] rejected control message {place}: {why}\n") == 1
        assert board.status().generations == before.generations
        assert board.status().last_applied == before.last_applied

        # B16: swapping back takes up the generation that is still there.
        board.ask(wiring(0))
        assert board.wait_until_live(wiring(0)) == first
        assert board.states() == {first: "live", second: "retiring"}
        assert board.status().last_applied != before.last_applied

        # B15: a burst ends on its last message and builds at most two of them.
        # B36: what that one does not name is as the messages before it have left it.
        newest = board.status().newest
        burst = [board.ask(wiring(1 + n % 2, ["left", "asof"][n // 2 % 2])) for n in range(19)]
        last = board.ask({"topics": {"users": "users2", "accounts": "accounts2"}, "joins": {"user_account": "inner"}})
        third = board.wait_until_live(wiring(2, "asof", "inner"))
        assert board.status().newest <= newest + 2
        assert board.verdicts()[last] == ("applied", None)
        assert {board.verdicts()[place][0] for place in burst[:-1]} <= {"superseded"}
        board.expect_oracle(third)

        # A build that fails changes nothing, says why, and the next message works.
        states = board.states()
        number = board.status().newest + 1
        obstacle = board.block(f"g{number}")
        place = board.ask(wiring(1))
        status = board.wait_for(lambda status: status.newest == number and len(status.generations) == len(states))
        assert board.states() == states
        assert status.live == third
        assert status.phase is Phase.LIVE
        assert status.message.startswith(f"g{number} could not be built: ")
        assert board.verdicts()[place] == ("failed", status.message)
        board.admin.delete([obstacle])
        board.ask(wiring(1))
        fourth = board.wait_until_live(wiring(1, "left", "inner"))
        board.expect_oracle(fourth)
        board.expect_oracle(third)

        board.expect_last_applied_only_changed_by_swaps()
        board.expect_complete_since_the_switch()
        board.expect_nothing_left_behind()

        _a_second_one_is_refused(board)
        _the_command_waits_for_its_end(board)

        board.pipeline.stop()
        assert board.pipeline.said().count("Traceback") == 0


def _a_second_one_is_refused(board: Swapping) -> None:
    done = _liveboard(board, "pipeline")
    assert done.returncode == 1
    assert "is in use by another pipeline" in done.stderr
    assert done.stderr.count("\n") == 1


def _the_command_waits_for_its_end(board: Swapping) -> None:
    done = _liveboard(board, "swap", "--users", "users2", "--accounts", "accounts2", "--join", "asof", "--wait")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("the board is live with the new wiring\n")
    assert board.status().generations[board.status().live or ""].wiring == wiring(2, "asof", "inner")
    done = _liveboard(board, "swap", "--join", "asof", "--wait")
    assert (done.returncode, done.stdout) == (0, "nothing to do: this wiring is live already\n")
    done = _liveboard(board, "swap", "--users", "none", "--wait")
    assert done.returncode == 1
    assert done.stderr.startswith("liveboard: the control message was rejected: expected the Kafka topics ['none']")
    done = _liveboard(board, "swap", "--topic", "user=users1")
    assert done.returncode == 1
    assert 'topics: expected one of users, accounts, found "user", did you mean users?' in done.stderr


def _liveboard(board: Swapping, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "liveboard", *command],
        env=board.pipeline.environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )


def test_b14_missing_topics_are_awaited_and_the_control_listener_runs_all_the_same(kafka: str, tmp_path: Path) -> None:
    with swapping(kafka, tmp_path, LIVEBOARD_CONTROL_RETIRE_AFTER="0 s") as board:
        board.admin.delete(["users"])
        board.start()
        status = board.wait_for(lambda status: status.phase is Phase.WAITING)
        assert status.message == "waiting for the topics users, which do not exist yet"
        assert status.live is None

        bad = board.ask(b"nonsense")
        board.wait_for(lambda status: status.control)
        assert board.verdicts()[bad][0] == "rejected"
        board.fill(0)
        board.expect_oracle(board.wait_until_live(wiring(0)))

        # B16: what is retired leaves nothing.
        board.ask(wiring(1))
        live = board.wait_until_live(wiring(1))
        board.wait_for(lambda status: list(status.generations) == [live])
        board.expect_nothing_left_behind()
        board.pipeline.stop()


def test_b15_a_swap_under_load_loses_and_doubles_nothing(kafka: str, tmp_path: Path) -> None:
    with swapping(kafka, tmp_path, LIVEBOARD_SPARK_CONF=spark_conf(ROOMY)) as board:
        board.fill(1, _HISTORY)
        board.start()
        first = board.wait_until_live(wiring(0))
        with board.load(0, 1_000, seconds=_BUSY_S), board.load(1, 1_000, seconds=_BUSY_S):
            board.ask(wiring(1))
            building = board.wait_for(lambda status: any(r.progress for r in status.generations.values()))
            assert building.live == first
            second = board.wait_until_live(wiring(1))
            with closing(board.bench(wiring(1), second)) as bench:
                bench.let_pass(500)
        board.expect_oracle(first)
        board.expect_oracle(second)
        records = [status.generations[second] for status in board.history() if second in status.generations]
        shown = [record.progress for record in records if record.progress]
        assert all(progress.total >= _HISTORY for progress in shown)
        assert [progress.rows for progress in shown] == sorted(progress.rows for progress in shown)
        assert any(0 < progress.percent < 100 for progress in shown)
        assert all(status.live for status in board.history() if status.newest > 1)
        assert State.LIVE in {record.state for record in board.status().generations.values()}
        board.pipeline.stop()
