"""The alerts of a board, evaluated by a process of its own, to be killed and started again; and what it told."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from live import NAMES, PATIENCE_S, wait

from liveboard.alerts.evaluator import Evaluator
from liveboard.config import load
from liveboard.kafka.admin import Admin
from liveboard.kafka.board import StatusReader
from liveboard.kafka.reader import ChangelogReader

BOARD = """
[board.sources.users]
topic = "users"
schema = "userId string, age bigint"
table = "users_ui"

[board.alerts.minor]
table = "users_ui"
when = [["age", "<", 18]]
"""


def forget(bootstrap: str) -> None:
    """As if no alert had ever been raised here."""
    Admin({"bootstrap.servers": bootstrap}).delete([NAMES.alerts, NAMES.raised, NAMES.delivered])


class Process:
    """An evaluator beside a board that the test plays."""

    def __init__(self, bootstrap: str, directory: Path, toml: str = BOARD) -> None:
        self._file = directory / "alerts.toml"
        self._file.write_text(toml)
        self._bootstrap = bootstrap
        self.start()

    def start(self) -> None:
        """Starts it; it need not be ready when this returns."""
        self._process = subprocess.Popen([sys.executable, __file__, self._bootstrap, str(self._file)])

    def kill(self) -> None:
        """kill -9."""
        self._process.kill()
        self._process.wait(PATIENCE_S)


@contextmanager
def evaluating(bootstrap: str, directory: Path, toml: str = BOARD) -> Iterator[Process]:
    """An evaluator for as long as it is needed."""
    process = Process(bootstrap, directory, toml)
    try:
        yield process
    finally:
        process.kill()


class Told:
    """Reads a topic of alerts, and has all of it."""

    def __init__(self, bootstrap: str, topic: str = NAMES.alerts) -> None:
        self.records: list[dict[str, Any]] = []
        self._topic = topic
        self._reader = ChangelogReader({"bootstrap.servers": bootstrap}, [topic]).__enter__()

    def look(self) -> list[dict[str, Any]]:
        """All records so far."""
        for change in self._reader.read(0.05):
            if change.value:
                record = json.loads(change.value)
                assert json.loads(change.key) == [record["alert"], record["key"]]
                self.records.append(record)
        return self.records

    def until(self, done: Callable[[list[dict[str, Any]]], object]) -> None:
        """Waits until something is so."""
        wait(lambda: done(self.look()))

    def until_more_than(self, count: int) -> None:
        """Waits for another record after so many."""
        self.until(lambda records: len(records) > count)

    def states(self) -> dict[str, list[str]]:
        """What was told of each row, in order."""
        found: dict[str, list[str]] = {}
        for record in self.records:
            found.setdefault(record["key"], []).append(record["state"])
        return found

    def close(self) -> None:
        """Ends the connection."""
        self._reader.__exit__(None, None, None)


def _main(bootstrap: str, file: str) -> None:
    settings, client_config = load(Path(file), environ={}), {"bootstrap.servers": bootstrap}
    with StatusReader(client_config, settings.names) as reader:

        def status() -> Any:
            kept = reader.look()
            return kept.status if kept else None

        evaluator = Evaluator(settings.board, settings.names, client_config, status, print, quiet_s=0.5)
        evaluator.run(threading.Event())


if __name__ == "__main__":
    _main(*sys.argv[1:])
