"""`liveboard up --sample` as a user runs it: everything grows, heals, ends, and goes on where it was."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from liveboard.config import default_board
from liveboard.contract.tables import table_columns

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(900)]

PATIENCE_S = 180.0
TABLES = list(table_columns(default_board()))
LIVEBOARD = [sys.executable, "-m", "liveboard"]
STATUS = re.compile(r"^(\w+): ([\d,]+) rows, [\d,]+ changes/s, (.+)$", re.MULTILINE)


class Up:
    """A running `liveboard up --sample` whose output is a file."""

    def __init__(self, directory: Path) -> None:
        self.environ = {
            **{name: value for name, value in os.environ.items() if not name.startswith("LIVEBOARD_")},
            "LIVEBOARD_STORAGE_DIR": str(directory / "storage"),
            "LIVEBOARD_KAFKA_PORT": "0",
            "LIVEBOARD_SERVER_PORT": "0",
        }
        self._directory = directory
        self._output = directory / "up.out"
        self._seen = 0

    def start(self) -> None:
        """Starts it; what an earlier one said does not count."""
        with self._output.open("ab") as output:
            self._seen = output.tell()
            command = [*LIVEBOARD, "up", "--sample", "--rate", "200"]
            self.process = subprocess.Popen(
                command, cwd=self._directory, env=self.environ, stdout=output, stderr=subprocess.STDOUT
            )

    def said(self) -> str:
        """What it has said since the start or the last `forget`."""
        return self._output.read_bytes()[self._seen :].decode()

    def said_from_the_start(self) -> str:
        """What it, and an earlier one, has ever said."""
        return self._output.read_text()

    def forget(self) -> None:
        """What it has said so far does not count any more."""
        self._seen = self._output.stat().st_size

    def rows(self) -> dict[str, int]:
        """The rows of every table, as last said."""
        return {name: int(rows.replace(",", "")) for name, rows, _ in STATUS.findall(self.said())}

    def states(self) -> dict[str, str]:
        """The state of every table, as last said."""
        return {name: state for name, _, state in STATUS.findall(self.said())}

    def family(self) -> list[psutil.Process]:
        """All processes that it has started, also by others."""
        return psutil.Process(self.process.pid).children(recursive=True)

    def find(self, words: str) -> psutil.Process:
        """The one process of its family whose command has these words, guards apart."""
        found = [p for p in self.family() if words in _command(p) and "guard.py" not in _command(p)]
        assert len(found) == 1, [_command(p)[-200:] for p in self.family()]
        return found[0]

    def until(self, condition: Callable[[], object]) -> None:
        """Waits for it, as long as `up` runs."""
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            assert self.process.poll() is None, self.said()
            assert time.monotonic() < deadline, self.said()[-3000:]
            time.sleep(0.1)

    def until_live_and_growing(self) -> None:
        """Waits until every table is live and has more rows than now."""
        self.until(lambda: self.rows().keys() == set(TABLES))
        before = self.rows()
        self.until(lambda: all(state.startswith("live") for state in self.states().values()))
        self.until(lambda: all(self.rows()[table] > before[table] for table in TABLES))

    def end(self, with_signal: signal.Signals) -> list[psutil.Process]:
        """Ends it by a signal; returns the processes that are left."""
        family = self.family()
        self.process.send_signal(with_signal)
        assert self.process.wait(PATIENCE_S) == 0, self.said()[-3000:]
        return _left(family, 1)

    def run(self, *command: str) -> str:
        """The output of another command with the same settings."""
        done = self.try_to_run(*command)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def try_to_run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """The same, whatever becomes of it."""
        return subprocess.run(
            [*LIVEBOARD, *command],
            cwd=self._directory,
            env=self.environ,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )


def _left(processes: list[psutil.Process], timeout: float) -> list[psutil.Process]:
    """Those that still run after the timeout; a zombie has ended and only waits for the system to notice."""
    deadline = time.monotonic() + timeout
    while (left := [p for p in processes if _runs(p)]) and time.monotonic() < deadline:
        time.sleep(0.05)
    return left


def _runs(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Up]:
    running = Up(tmp_path)
    running.start()
    try:
        yield running
    finally:
        if running.process.poll() is None:
            family = running.family()
            running.process.kill()
            running.process.wait()
            _left(family, PATIENCE_S)


def test_up_grows_heals_ends_and_goes_on(up: Up) -> None:
    up.until_live_and_growing()

    _kill(up, "-m liveboard pipeline", "pipeline starts again in 1 s: killed by SIGKILL")
    _kill(up, "SparkSubmit", "pipeline starts again in . s.*: .*Spark")
    _kill(up, "kafka.Kafka", "broker starts again in 1 s: The broker was killed by SIGKILL")
    up.find("-m liveboard serve").kill()
    up.until(lambda: "serve starts again in 1 s: killed by SIGKILL" in up.said())
    _the_server_answers(up)

    heading, *rows = up.run("tail", "final_ui", "--limit", "3").splitlines()
    assert heading.split() == [column.name for column in table_columns(default_board())["final_ui"]]
    assert len(rows) == 3
    [changed] = [json.loads(line) for line in up.run("tail", "final_ui", "--json", "--limit", "1").splitlines()]
    assert changed["table"] == "final_ui"
    assert re.fullmatch(r"\d+-\d+", changed["key"])
    assert re.fullmatch(r"u\d{5}", changed["row"]["userId"])
    assert "all is well" in up.run("doctor")

    before = up.rows()
    assert up.end(signal.SIGINT) == []

    up.start()
    up.until(lambda: up.rows().keys() == set(TABLES))
    up.until(lambda: all(up.rows()[table] >= before[table] for table in TABLES))
    assert set(up.states().values()) == {"starting …"}
    up.until_live_and_growing()
    assert up.end(signal.SIGTERM) == []


def _the_server_answers(up: Up) -> None:
    """The commands that ask the server, which find it and its key by themselves."""
    up.until(lambda: "final_ui" in up.try_to_run("tables").stdout)
    assert {line.split()[0] for line in up.run("tables").splitlines()} == {
        *TABLES,
        "control_raw",
        "orchestrator_status",
    }
    heading, *rows = up.run("export", "final_ui").splitlines()
    assert heading == ",".join(column.name for column in table_columns(default_board())["final_ui"])
    assert len(rows) > 10
    url, key = re.findall(r"live tables at (http://\S+) with the key (\S+)", up.said_from_the_start())[-1]
    heading, *rows = up.run("tail", "final_ui", "--url", url, "--limit", "3").splitlines()
    assert heading.split()[0] == "userId"
    assert len(rows) == 3
    assert key not in " ".join(_command(process) for process in up.family())
    said = up.run("swap", "--join", "inner", "--wait", "--url", url, "--key", key)
    assert said.endswith("the board is live with the new wiring\n")
    up.run("swap", "--join", "left", "--wait")


def _kill(up: Up, words: str, notice: str) -> None:
    """Kills one process; it is said, tables are stale, and then all is as before."""
    victim = up.find(words)
    up.forget()
    victim.kill()
    up.until(lambda: re.search(f"^liveboard: {notice}", up.said(), re.MULTILINE))
    up.until(lambda: re.search(r"stale since \d\d:\d\d:\d\d", up.said()))
    up.forget()
    up.until_live_and_growing()


def test_killed_up_leaves_no_process(up: Up) -> None:
    up.until(lambda: "pipeline: starting Spark" in up.said())
    up.until(lambda: any("SparkSubmit" in _command(process) for process in up.family()))
    family = up.family()
    up.process.kill()
    up.process.wait()
    assert _left(family, PATIENCE_S) == []


def test_interrupted_while_starting_it_ends_cleanly(up: Up) -> None:
    up.until(lambda: up.family())
    assert up.end(signal.SIGINT) == []


def test_a_second_up_on_the_same_directory_is_refused_in_one_sentence(up: Up) -> None:
    up.until(lambda: "Kafka 127.0.0.1" in up.said())
    done = subprocess.run([*LIVEBOARD, "up"], env=up.environ, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 1
    assert re.fullmatch(r"liveboard: The broker directory .* is in use .*\n", done.stderr)
    assert up.process.poll() is None
