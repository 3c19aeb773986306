"""`liveboard up --sample` in the hands of a test: everything that a user starts, as processes of its own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psutil
from harness import QUICK_SPARK
from process import spark_conf

from liveboard.config import default_board
from liveboard.contract.tables import table_columns

PATIENCE_S = 300.0
# Events a second.
RATE = 20
TABLES = list(table_columns(default_board()))
GROWING = [table for table in TABLES if table not in default_board().aggregates]
LIVEBOARD = [sys.executable, "-m", "liveboard"]
STATUS = re.compile(r"^(\w+): ([\d,]+) rows, [\d,]+ changes/s, (.+)$", re.MULTILINE)


class Up:
    """A running `liveboard up --sample` whose output is a file."""

    def __init__(self, directory: Path, liveboard: Sequence[str] = LIVEBOARD) -> None:
        self.environ = {
            **{name: value for name, value in os.environ.items() if not name.startswith("LIVEBOARD_")},
            "LIVEBOARD_STORAGE_DIR": str(directory / "storage"),
            "LIVEBOARD_KAFKA_PORT": "0",
            "LIVEBOARD_SERVER_PORT": "0",
            # What was swapped away would run on beside what is looked at.
            "LIVEBOARD_CONTROL_RETIRE_AFTER": "10 s",
        }
        if liveboard is LIVEBOARD:
            self.environ["LIVEBOARD_SPARK_CONF"] = spark_conf(QUICK_SPARK)
        else:
            self.environ.pop("PYTHONPATH", None)  # it would be found before what is installed
        self._directory = directory
        self._liveboard = liveboard
        self._output = directory / "up.out"
        self._seen = 0

    def start(self) -> None:
        """Starts it; what an earlier one said does not count."""
        with self._output.open("ab") as output:
            self._seen = output.tell()
            self.process = subprocess.Popen(
                [*self._liveboard, "up", "--sample", "--rate", str(RATE)],
                cwd=self._directory,
                env=self.environ,
                stdout=output,
                stderr=subprocess.STDOUT,
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
        found = [p for p in self.family() if words in command(p) and "guard.py" not in command(p)]
        assert len(found) == 1, [command(p)[-200:] for p in self.family()]
        return found[0]

    def until(self, condition: Callable[[], object]) -> None:
        """Waits for it, as long as `up` runs."""
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            assert self.process.poll() is None, self.said()
            assert time.monotonic() < deadline, self.said()[-3000:]
            time.sleep(0.1)

    def until_live_and_growing(self) -> None:
        """Waits until every table is live and has more rows than now; an aggregate has as many as there are groups."""
        self.until(lambda: self.rows().keys() == set(TABLES))
        before = self.rows()
        self.until(lambda: all(state.startswith("live") for state in self.states().values()))
        self.until(lambda: all(self.rows()[table] > before[table] for table in GROWING))

    def end(self, with_signal: signal.Signals) -> list[psutil.Process]:
        """Ends it by a signal; returns the processes that are left."""
        family = self.family()
        self.process.send_signal(with_signal)
        assert self.process.wait(PATIENCE_S) == 0, self.said()[-3000:]
        return left(family, 1)

    def run(self, *words: str) -> str:
        """The output of another command with the same settings."""
        done = self.try_to_run(*words)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def try_to_run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """The same, whatever becomes of it."""
        return subprocess.run(
            [*self._liveboard, *words],
            cwd=self._directory,
            env=self.environ,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )


def left(processes: list[psutil.Process], timeout: float) -> list[psutil.Process]:
    """Those that still run after the timeout; a zombie has ended and only waits for the system to notice."""
    deadline = time.monotonic() + timeout
    while (alive := [p for p in processes if _runs(p)]) and time.monotonic() < deadline:
        time.sleep(0.05)
    return alive


def _runs(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def command(process: psutil.Process) -> str:
    """How it was started; empty when it has ended."""
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


@contextmanager
def up_in(directory: Path, liveboard: Sequence[str] = LIVEBOARD) -> Iterator[Up]:
    """A running one that leaves nothing behind, however it ends."""
    running = Up(directory, liveboard)
    running.start()
    try:
        yield running
    finally:
        if running.process.poll() is None:
            family = running.family()
            running.process.kill()
            running.process.wait()
            left(family, PATIENCE_S)
