"""A live-table server and its board in the hands of a test in another language.

Reads commands, a JSON object per line, and answers each with one; the first line out says where the server is. It ends
with its input.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[3] / "tests"))

from live import KEY, USERS, Board, Running, wait

from liveboard.contract.schema import Column
from liveboard.kafka.broker import Broker


class Commands:
    """What a test can do."""

    def __init__(self, bootstrap: str) -> None:
        self.board = Board(bootstrap)
        self.running = Running(bootstrap)

    def build(self, columns: list[list[str]] | None = None) -> str:
        """A new generation of users_ui; gives its name."""
        chosen = tuple(Column(*column) for column in columns) if columns else USERS
        return self.board.build({"users_ui": chosen})

    def write(self, generation: str, rows: dict[str, Any]) -> None:
        """Writes and removes rows."""
        self.board.write(generation, rows)

    def switch(self, generation: str) -> None:
        """Makes a generation the live one; the server hears of it soon."""
        self.board.switch(generation)

    def bound(self, generation: str) -> None:
        """Waits until the server shows a generation."""
        self.running.bound(generation)

    def close(self, generation: str) -> None:
        """Removes a generation."""
        self.board.close(generation)

    def stop_server(self) -> None:
        """Ends the server as a signal would."""
        self.running.stop()

    def start_server(self) -> None:
        """Starts it again, at the same address."""
        self.running = Running(self.board.bootstrap, port=self.running.port)

    def subscribed(self, count: int) -> None:
        """Waits until there are so many subscriptions on the wire."""
        wait(lambda: self.running.server.hub.subscriptions == count)


def main() -> None:
    """Obeys until the input ends."""
    with tempfile.TemporaryDirectory(prefix="table-hub-") as directory, Broker(Path(directory)) as broker:
        commands = Commands(broker.bootstrap_servers)
        print(json.dumps({"port": commands.running.port, "key": KEY}), flush=True)
        for line in sys.stdin:
            command = json.loads(line)
            answer = getattr(commands, command.pop("do").replace("-", "_"))(**command)
            print(json.dumps({"answer": answer}), flush=True)
        commands.running.stop()


if __name__ == "__main__":
    main()
