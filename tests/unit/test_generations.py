"""B13, B15, B16, B17: the life of generations, every path of it, without Spark or Kafka."""

from __future__ import annotations

from dataclasses import dataclass, field

import boards
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace as changed

from liveboard.config import Duration
from liveboard.contract.board import Wiring
from liveboard.contract.changelog import timestamp_text
from liveboard.contract.names import generation_id
from liveboard.contract.status import (
    BoardStatus,
    GenerationRecord,
    PendingRepairs,
    Progress,
    Request,
    State,
    decode_status,
    status_row,
)
from liveboard.orchestrator import generations
from liveboard.orchestrator.generations import Do, NextStep

BOARD = boards.default_board()
CONFIGURED = BOARD.wiring


def wiring(name: str) -> Wiring:
    return Wiring({"users": f"u{name}", "accounts": f"a{name}"}, {"final_ui": "left", "user_account": "asof"})


def request(name: str, offset: int = 0) -> Request:
    return Request(wiring(name), 0, offset, "{}", timestamp_text(0))


@dataclass
class Orchestrator:
    """Carries out every step in no time and without anything that could go wrong, unless the test says so."""

    status: BoardStatus = field(default_factory=lambda: BoardStatus(sources=("users", "accounts")))
    usable: set[str] = field(default_factory=set)
    now: float = 1_000.0
    built: list[str] = field(default_factory=list)

    def ask(self, name: str) -> None:
        self.status = generations.requested(self.status, request(name))

    def building(self) -> list[str]:
        return [name for name, record in self.status.generations.items() if record.state is State.BUILDING]

    def step(self) -> NextStep:
        goal = generations.target(self.status, BOARD)
        step = generations.next_step(self.status, goal, self.usable, self.now)
        match step.do:
            case Do.BUILD:
                name = generation_id(self.status.newest + 1)
                record = GenerationRecord(state=State.BUILDING, wiring=goal, tables={})
                self.status = generations.begun(self.status, name, record)
                self.usable.add(name)
                self.built.append(name)
            case Do.SWITCH:
                self.switch(step.generation)
            case Do.CLOSE:
                self.status = generations.closed(self.status, step.generation)
            case Do.REMOVE:
                self.status = generations.removed(self.status, step.generation)
                self.usable.discard(step.generation)
        # What is on record says everything: a restart here would go on the same way.
        self.status = decode_status(self.status.encode())
        return step

    def settle(self) -> None:
        """Takes steps until there is nothing to do but to wait for a build."""
        for _ in range(100):
            if self.step().do is Do.NOTHING:
                return
        raise AssertionError("it never ends")

    def finish(self) -> None:
        """Ends the build that is going on."""
        self.settle()
        for name in self.building():
            self.switch(name)
        self.settle()

    def switch(self, name: str) -> None:
        old_usable = self.status.live in self.usable
        self.status = generations.switched(
            self.status, name, now=self.now, complete_at={}, retire_after=Duration(900), old_usable=old_usable
        )

    def fail(self) -> None:
        [name] = self.building()
        self.status = generations.failed(self.status, name)

    def states(self) -> dict[str, str]:
        return {name: str(record.state) for name, record in self.status.generations.items()}


@pytest.fixture
def board() -> Orchestrator:
    """A board with its configured wiring live."""
    board = Orchestrator()
    board.finish()
    return board


def test_b14_without_a_control_message_the_configured_wiring_is_built(board: Orchestrator) -> None:
    assert board.states() == {"g1": "live"}
    assert board.status.generations["g1"].wiring == CONFIGURED


def test_b15_a_swap_is_built_beside_and_switched_in_one_step(board: Orchestrator) -> None:
    board.ask("2")
    board.settle()
    assert board.states() == {"g1": "live", "g2": "building"}
    assert board.status.live == "g1"
    board.finish()
    assert board.states() == {"g1": "retiring", "g2": "live"}
    assert board.status.live == "g2"
    assert board.status.request is None


def test_b13_the_live_wiring_asked_for_again_builds_nothing(board: Orchestrator) -> None:
    board.ask("2")
    board.finish()
    applied = board.status.last_applied
    board.now += 1
    board.ask("2")
    assert board.step() == NextStep(Do.NOTHING)
    assert board.status.last_applied == applied


def test_b15_a_newer_message_ends_the_build_and_leaves_nothing_of_it(board: Orchestrator) -> None:
    board.ask("2")
    board.settle()
    board.ask("3")
    board.settle()
    assert board.states() == {"g1": "live", "g3": "building"}
    board.finish()
    assert board.status.generations["g3"].wiring == wiring("3")


def test_b15_the_live_wiring_asked_for_during_a_build_ends_the_build(board: Orchestrator) -> None:
    board.ask("2")
    board.finish()
    board.ask("3")
    board.settle()
    board.ask("2")
    board.settle()
    assert board.states() == {"g1": "retiring", "g2": "live"}


def test_b16_swapping_back_is_a_switch_and_the_other_one_retires(board: Orchestrator) -> None:
    board.ask("2")
    board.finish()
    board.now += 100
    board.status = generations.requested(board.status, Request(CONFIGURED, 0, 1, "{}", timestamp_text(0)))
    assert board.step() == NextStep(Do.SWITCH, "g1")
    assert board.states() == {"g1": "live", "g2": "retiring"}
    assert board.status.generations["g1"].retire_at is None
    assert board.status.generations["g2"].retire_at == board.now + 900
    assert board.built == ["g1", "g2"]


def test_b16_a_retired_generation_is_closed_and_removed_when_its_time_is_over(board: Orchestrator) -> None:
    board.ask("2")
    board.finish()
    board.now += 899
    assert board.step() == NextStep(Do.NOTHING)
    board.now += 1
    assert board.step() == NextStep(Do.CLOSE, "g1")
    assert board.step() == NextStep(Do.REMOVE, "g1")
    assert board.states() == {"g2": "live"}


def test_b16_kept_generations_never_close(board: Orchestrator) -> None:
    board.ask("2")
    board.settle()
    board.status = generations.switched(board.status, "g2", now=0, complete_at={}, retire_after=None)
    board.now = 1e12
    assert board.step() == NextStep(Do.NOTHING)
    assert board.states() == {"g1": "retiring", "g2": "live"}


def test_b15_a_failed_build_leaves_the_old_one_live_and_is_given_up(board: Orchestrator) -> None:
    board.ask("2")
    board.settle()
    board.fail()
    board.settle()
    assert board.states() == {"g1": "live"}
    assert board.built == ["g1", "g2"]
    board.ask("3")
    board.finish()
    assert board.states() == {"g1": "retiring", "g3": "live"}


def test_b14_with_nothing_live_the_wiring_from_before_is_built_again_after_a_failure() -> None:
    board = Orchestrator()
    board.ask("2")
    board.settle()
    board.fail()
    board.finish()
    assert board.states() == {"g2": "live"}
    assert board.status.generations["g2"].wiring == CONFIGURED


def test_a_generation_that_cannot_go_on_stays_live_until_it_is_replaced_and_does_not_retire(
    board: Orchestrator,
) -> None:
    board.usable.discard("g1")
    applied = board.status.last_applied
    board.now += 1
    board.settle()
    assert board.states() == {"g1": "live", "g2": "building"}
    board.finish()
    assert board.states() == {"g2": "live"}
    assert board.status.last_applied == applied


def test_an_interrupted_build_is_taken_up_only_if_it_is_still_asked_for(board: Orchestrator) -> None:
    board.ask("2")
    board.settle()
    assert board.step() == NextStep(Do.NOTHING)
    board.usable.discard("g2")
    assert [board.step().do for _ in range(3)] == [Do.CLOSE, Do.REMOVE, Do.BUILD]
    assert board.building() == ["g3"]


def test_b17_last_applied_changes_with_every_swap_and_only_then(board: Orchestrator) -> None:
    seen = [board.status.last_applied]
    for name, finished in (("2", True), ("2", True), ("3", False), ("2", True), ("4", True)):
        board.now += 1
        board.ask(name)
        if finished:
            board.finish()
        else:
            board.settle()
        seen.append(board.status.last_applied)
    assert seen == [timestamp_text(int(t * 1000)) for t in (1000, 1001, 1001, 1001, 1001, 1005)]


def test_b17_the_status_row_is_that_of_the_live_generation(board: Orchestrator) -> None:
    board.ask("2")
    board.settle()
    record = changed(board.status.generations["g2"], progress=Progress(10, 40, 5.0))
    records = {**board.status.generations, "g2": record}
    row = status_row(changed(board.status, message="building g2", generations=records))
    live = ("users", "accounts", "left", timestamp_text(1_000_000), "g1")
    assert row == (*live, "starting", "building g2", "g2", 10, 40, 5.0)


@pytest.mark.parametrize(("keys", "words"), [(1, "1 key waits"), (1_200, "1,200 keys wait")])
def test_b33_the_status_says_how_many_keys_wait_for_a_repair_unless_there_is_more_to_say(
    board: Orchestrator, keys: int, words: str
) -> None:
    record = changed(board.status.generations["g1"], repairs=PendingRepairs(keys, since=1_000.5))
    waiting = changed(board.status, generations={"g1": record})
    said = [status_row(changed(waiting, message=message))[6] for message in ("", "g2 could not be built")]
    assert said == [f"{words} for a repair, the first since {timestamp_text(1_000_500)}", "g2 could not be built"]


@pytest.mark.parametrize("state", list(State))
@pytest.mark.parametrize("move", ["switched", "failed", "closed", "removed"])
def test_only_the_moves_of_the_diagram_are_allowed(state: State, move: str) -> None:
    record = GenerationRecord(state=state, wiring=CONFIGURED, tables={})
    status = BoardStatus(sources=(), newest=1, generations={"g1": record})
    allowed = {
        State.BUILDING: {"switched", "failed", "closed"},
        State.LIVE: {"closed"},
        State.RETIRING: {"switched", "closed"},
        State.CLOSED: {"removed"},
        State.FAILED: {"removed"},
    }
    moves = {
        "switched": lambda: generations.switched(status, "g1", now=0, complete_at={}, retire_after=None),
        "failed": lambda: generations.failed(status, "g1"),
        "closed": lambda: generations.closed(status, "g1"),
        "removed": lambda: generations.removed(status, "g1"),
    }
    if move in allowed[state]:
        moves[move]()
    else:
        with pytest.raises(ValueError, match="expected"):
            moves[move]()


_EVENTS = st.sampled_from(["1", "2", "3", "step", "step", "built", "fails", "later", "broken"])


@given(st.lists(_EVENTS, max_size=40))
def test_b15_whatever_happens_something_is_live_and_it_ends_on_the_newest_message(events: list[str]) -> None:
    board = Orchestrator()
    board.finish()
    for event in events:
        before = board.status.live
        match event:
            case "step":
                board.step()
            case "built":
                for name in board.building():
                    board.switch(name)
            case "fails":
                if board.building():
                    board.fail()
            case "later":
                board.now += 500
            case "broken":
                board.usable.discard(before or "")
            case name:
                board.ask(name)
        live = [name for name, state in board.states().items() if state == "live"]
        assert live == [board.status.live]
        assert len(board.building()) <= 1 or event == "step"
    wanted = generations.target(board.status, BOARD)
    board.finish()
    assert board.status.generations[board.status.live or ""].wiring == wanted
    board.now += 900
    board.settle()
    assert list(board.states().values()) == ["live"]
