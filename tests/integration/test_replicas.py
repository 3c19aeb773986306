"""Several servers behind a load balancer: the same rows in the same order, also for a viewer who loses one of them."""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from live import KEY, NAMES, Board, at, serving, users, wait
from replicas import Replica, balanced

import liveboard
from liveboard.client import SyncSubscription, Update
from liveboard.kafka.admin import Admin
from liveboard.serving import snapshots

pytestmark = pytest.mark.integration

ROWS = 300
VIEWERS = 6


@pytest.fixture
def pair(kafka: str, tmp_path: Path) -> Iterator[tuple[Replica, Replica]]:
    """Two servers that are not started yet."""
    pair = Replica(kafka, tmp_path), Replica(kafka, tmp_path)
    yield pair
    for replica in pair:
        replica.kill()


class Load:
    """Changes rows, adds new ones late and removes some, in a thread; knows what the table must be."""

    def __init__(self, board: Board) -> None:
        self.written: dict[str, set[tuple[Any, ...]]] = {
            key: {tuple(row[:2])} for key, row in users(*range(ROWS)).items()
        }
        self.rows: dict[str, list[Any]] = users(*range(ROWS))
        self._board = board
        self._random = random.Random(20)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def step(self) -> None:
        """Some changes at once."""
        numbers = self._random.sample(range(2 * ROWS), 10)
        changes: dict[str, list[Any] | None] = {}
        for number in numbers:
            key = f"0-{number}"
            is_gone = key in self.rows and self._random.random() < 0.2
            changes[key] = None if is_gone else [f"u{number}", self._random.randrange(1_000), at(number)]
        # On record before Kafka has them, so that no viewer can be faster.
        for key, row in changes.items():
            if row is None:
                del self.rows[key]
            else:
                self.rows[key] = row
                self.written.setdefault(key, set()).add(tuple(row[:2]))
        self._board.write(str(self._board.live), changes)

    def expected(self) -> list[tuple[Any, ...]]:
        """All rows, in the order of the table."""
        return [(row[0], row[1]) for row in sorted(self.rows.values(), key=lambda row: row[2])]

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopping.wait(0.02):
            self.step()


def shown(subscription: SyncSubscription) -> list[tuple[Any, ...]]:
    return [row[:2] for row in subscription.rows]


def test_a_viewer_that_loses_its_server_goes_on_at_another_without_a_wrong_row(
    kafka: str, pair: tuple[Replica, Replica]
) -> None:
    board = Board(kafka)
    generation = board.build()
    board.write(generation, users(*range(ROWS)))
    board.switch(generation)
    one, two = pair
    one.start()
    load = Load(board)
    for _ in range(20):
        load.step()
    two.start()
    wrong: list[tuple[str, Any]] = []

    def look(update: Update) -> None:
        for key, row in zip(update.keys, update.rows, strict=True):
            if row[:2] not in load.written[key]:
                wrong.append((key, row))

    with balanced(one, two) as url, ExitStack() as viewers:
        clients = [viewers.enter_context(liveboard.connect(url, KEY)) for _ in range(VIEWERS)]
        windows = [client.subscribe("users_ui", look, (0, 1_000)) for client in clients]
        wait(lambda: one.metric("liveboard_viewers") == two.metric("liveboard_viewers") == VIEWERS / 2)
        load.start()
        wait(lambda: len(load.rows) > 1.1 * ROWS)
        one.kill()
        wait(lambda: two.metric("liveboard_viewers") == VIEWERS)
        wait(lambda: all(window.rows and window.stale_since is None for window in windows))
        one.start()
        load.stop()
        wait(lambda: all(shown(window) == load.expected() for window in windows))
        assert {window.stale_since for window in windows} == {None}
        assert wrong == []
        for replica in pair:
            with liveboard.connect(replica.url, KEY) as client:
                table = client.table("users_ui")
                wait(partial(lambda table: [row[:2] for row in table.rows()] == load.expected(), table))


def test_a_server_that_starts_again_begins_with_its_snapshot_if_it_fits(
    kafka: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(snapshots, "EVERY_S", 0.0)
    monkeypatch.setattr(snapshots, "WORTH_RECORDS", 1)
    caplog.set_level(logging.INFO, snapshots.__name__)
    board = Board(kafka)
    generation = board.build()
    topic = NAMES.changelog(generation, "users_ui")
    board.write(generation, users(*range(50)))
    board.switch(generation)

    def shows(*said: str) -> list[str]:
        """What a server shows that starts now; it ends again, once a snapshot of it is written."""
        caplog.clear()
        file = tmp_path / "server" / f"{topic}.rows"
        before = file.stat().st_mtime_ns if file.exists() else 0
        with serving(kafka, storage=tmp_path) as running:
            running.bound(generation)
            with running.client() as client:
                client.subscribe(1)
                shown = [key for key, _ in client.rows[1]]
            wait(lambda: file.exists() and file.stat().st_mtime_ns > before)
        found = [record.message for record in caplog.records if getattr(record, "topic", "") == topic]
        assert [text for text in found if text != "snapshot written"] == list(said)
        return shown

    assert shows() == list(users(*range(50)))
    board.write(generation, {**dict.fromkeys(users(3, 4)), **users(50, 51), **users(7, age=70)})
    assert shows("snapshot loaded") == [key for key in users(*range(52)) if key not in users(3, 4)]

    admin = Admin({"bootstrap.servers": kafka})
    admin.delete([topic])
    wait(lambda: topic not in admin.partitions())
    admin.create_changelogs([topic])
    board.write(generation, users(*range(100, 160)))
    assert shows("snapshot ignored") == list(users(*range(100, 160)))
