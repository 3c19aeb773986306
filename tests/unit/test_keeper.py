"""What keeps the parts of `up` alive: restarts that slow down, reasons that are said, no process left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from liveboard.backoff import Backoff
from liveboard.commands import keeper as keeping
from liveboard.commands.display import Light
from liveboard.commands.keeper import Child, Keeper
from liveboard.commands.up import Overview, light_of
from liveboard.contract import status
from liveboard.contract.errors import LiveboardError
from liveboard.kafka.board import KeptStatus

PATIENCE_S = 30.0


def _until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)


class FakePart:
    """Ends when told to; its starts are counted."""

    name = "part"

    def __init__(self) -> None:
        self.alive = False
        self.starts = 0
        self.stops = 0
        self.refusal = ""

    def start(self) -> None:
        self.starts += 1
        if self.refusal:
            raise LiveboardError(self.refusal)
        self.alive = True

    def reason(self) -> str:
        return "it fell over."

    def stop(self) -> None:
        self.stops += 1
        self.alive = False


@pytest.fixture
def part() -> FakePart:
    return FakePart()


@pytest.fixture
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeping, "Backoff", lambda: Backoff(0.2, 0.05))
    monkeypatch.setattr(keeping, "_TICK_S", 0.01)


@pytest.mark.usefixtures("_quick")
def test_a_part_that_ends_is_started_again_and_the_user_told(part: FakePart, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeping, "Backoff", lambda: Backoff(0.5, 0.5))
    with Keeper(part) as keeper:
        _until(lambda: keeper.up)
        assert keeper.note == ""
        part.alive = False
        _until(lambda: keeper.note)
        assert not keeper.up
        assert keeper.note == "part starts again in 0 s: it fell over."
        _until(lambda: keeper.up)
        assert (part.starts, part.stops) == (2, 1)
    assert not part.alive


@pytest.mark.usefixtures("_quick")
def test_the_note_goes_when_the_part_has_settled(part: FakePart, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeping, "_SETTLED_AFTER_S", 0.1)
    with Keeper(part) as keeper:
        _until(lambda: keeper.up)
        part.alive = False
        _until(lambda: part.starts == 2)
        _until(lambda: keeper.note == "")


@pytest.mark.usefixtures("_quick")
def test_a_part_that_cannot_start_is_tried_for_ever_with_its_sentence_shown(part: FakePart) -> None:
    part.refusal = "spark.master: expected 9 task slots, found 2"
    with Keeper(part) as keeper:
        _until(lambda: part.starts >= 6)
        assert "ends in a row: spark.master: expected 9 task slots, found 2" in keeper.note
    stopped = part.starts
    time.sleep(0.3)
    assert part.starts == stopped


def test_pauses_double_up_to_the_longest_and_begin_anew_after_health(
    part: FakePart, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    now, notes = 1_000.0, []
    keeper = Keeper(part)

    def wait(seconds: float) -> bool:
        nonlocal now
        now += seconds
        pauses.append(seconds)
        notes.append(keeper.note)
        if len(pauses) == 9:
            keeper._stopping.set()
        return False

    def run() -> str:
        nonlocal now
        now += 61 if len(pauses) == 7 else 1
        return "no"

    monkeypatch.setattr(keeper._stopping, "wait", wait)
    monkeypatch.setattr(keeper, "_run", run)
    monkeypatch.setattr("liveboard.backoff.time.monotonic", lambda: now)
    keeper._keep()
    assert pauses == [1, 2, 4, 8, 16, 30, 30, 1, 2]
    assert notes[6:] == [
        "part starts again in 30 s after 7 ends in a row: no",
        "part starts again in 1 s: no",
        "part starts again in 2 s after 2 ends in a row: no",
    ]


def test_a_part_that_runs_already_is_not_started(part: FakePart) -> None:
    part.alive = True
    with Keeper(part, running=True) as keeper:
        assert keeper.up
        time.sleep(0.2)
    assert (part.starts, part.stops) == (0, 1)


class Script(Child):
    """A child that runs a few lines of Python instead of a command."""

    def __init__(self, script: str, directory: Path) -> None:
        super().__init__("script", [], {"GREETING": "hello"}, directory)
        self._command = [sys.executable, "-c", script]


def test_a_child_has_its_environment_and_its_last_sentence_is_the_reason(tmp_path: Path) -> None:
    child = Script("import os, sys; print(os.environ['GREETING']); sys.exit('liveboard: it is over')", tmp_path)
    for _ in range(2):
        child.start()
        _until(lambda: not child.alive)
        assert child.said() == ["hello", "it is over"]
        assert child.reason() == "it is over"
        child.stop()
    assert (tmp_path / "script.out").read_text() == "hello\nliveboard: it is over\n" * 2


def test_a_silent_or_killed_child_has_a_reason_too(tmp_path: Path) -> None:
    child = Script("import sys; sys.exit(3)", tmp_path)
    child.start()
    _until(lambda: not child.alive)
    assert child.reason() == "exit code 3"
    child.stop()
    child = Script("import os, signal; print('live: g1', flush=True); os.kill(os.getpid(), signal.SIGKILL)", tmp_path)
    child.start()
    _until(lambda: not child.alive)
    assert child.reason() == "killed by SIGKILL"
    child.stop()


FAMILY = """
import signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
grandchild = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(grandchild.pid, flush=True)
time.sleep(600)
"""


def _gone(pid: int) -> bool:
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def test_stop_ends_a_stubborn_child_and_its_children(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeping, "_STOP_TIMEOUT_S", 0.3)
    child = Script(FAMILY, tmp_path)
    child.start()
    _until(child.said)
    pids = [child._process.pid, int(child.said()[0])] if child._process else []
    assert len(pids) == 2
    child.stop()
    _until(lambda: all(map(_gone, pids)))
    assert not child.alive
    child.stop()


OWNER = """
import sys, time
from pathlib import Path
from liveboard.commands.keeper import Child
child = Child("script", [], {}, Path(sys.argv[1]))
child._command = [sys.executable, "-c", "import os, time; print(os.getpid(), flush=True); time.sleep(600)"]
child.start()
while not child.said():
    time.sleep(0.01)
print(child.said()[0], flush=True)
time.sleep(600)
"""


def test_a_child_ends_with_a_killed_owner(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", OWNER, str(tmp_path)], stdout=subprocess.PIPE) as owner:
        assert owner.stdout
        pid = int(owner.stdout.readline())
        assert not _gone(pid)
        os.kill(owner.pid, signal.SIGKILL)
    _until(lambda: _gone(pid))


@pytest.mark.parametrize(
    ("said", "live", "phase"),
    [
        (status.Phase.STARTING, "g1", Light.STARTING),
        (status.Phase.WAITING, None, Light.STARTING),
        (status.Phase.BUILDING, None, Light.BUILDING),
        (status.Phase.BUILDING, "g1", Light.LIVE),
        (status.Phase.LIVE, "g1", Light.LIVE),
        (status.Phase.RESTARTING, "g1", Light.STARTING),
        (status.Phase.FAILED, None, Light.STARTING),
    ],
)
def test_the_phase_follows_what_the_running_pipeline_says(said: status.Phase, live: str | None, phase: Light) -> None:
    kept = KeptStatus(status.BoardStatus(sources=(), phase=said, live=live), 1_000)
    assert light_of(kept, 1_000) is phase
    assert light_of(kept, 1_001) is Light.STARTING
    assert light_of(None, 1_000) is Light.STARTING


def test_tables_are_stale_from_the_moment_the_pipeline_was_no_longer_live() -> None:
    overview = Overview.__new__(Overview)
    overview._was_live, overview._stale_since = False, None
    assert overview._health(Light.STARTING).light is Light.STARTING
    assert overview._health(Light.BUILDING).light is Light.BUILDING
    assert overview._health(Light.LIVE).light is Light.LIVE
    stale = overview._health(Light.STARTING)
    assert stale.light is Light.STALE
    assert stale.since is not None
    assert overview._health(Light.BUILDING) == stale
    assert overview._health(Light.LIVE).light is Light.LIVE
