"""Several servers behind a load balancer: the same rows in the same order, also for a viewer who loses one of them."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import pytest
from confluent_kafka import Consumer, TopicPartition
from harness import until
from live import KEY, NAMES, Board, at, serving, users, wait
from replicas import EAGER, Replica, answer, balanced

import liveboard
from liveboard.client import SyncSubscription, Update
from liveboard.kafka.admin import Admin
from liveboard.serving import snapshots

pytestmark = pytest.mark.integration

ROWS = 300
VIEWERS = 6
# Kafka tidies up all but the part that is being written.
COMPACTED = {"min.cleanable.dirty.ratio": "0.01", "segment.ms": "500"}


@pytest.fixture
def pair(kafka: str, tmp_path: Path) -> Iterator[tuple[Replica, Replica]]:
    """Two servers that are not started yet."""
    pair = Replica(kafka, tmp_path), Replica(kafka, tmp_path)
    yield pair
    for replica in pair:
        replica.kill()


@pytest.fixture
def eager(kafka: str, tmp_path: Path) -> Iterator[Replica]:
    """A server that writes snapshots all the time, and is not started yet."""
    replica = Replica(kafka, tmp_path, program=EAGER)
    yield replica
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

    def step_until(self, done: Callable[[], object], look: Callable[[Callable[[], object]], None] = wait) -> None:
        """Changes rows until something is so, at every look."""

        def stepped() -> object:
            self.step()
            return done()

        look(stepped)

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
        # Also not in disguise: the servers would take it for the same path.
        assert [answer(f"{url}{path}") for path in ("/metrics", "/readyz", "/%6detrics")] == [None] * 3
        assert answer(f"{one.url}/%6detrics")
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


def test_b11_a_server_that_is_killed_while_it_writes_snapshots_begins_with_the_last_whole_one(
    kafka: str, eager: Replica
) -> None:
    board = Board(kafka)
    generation = board.build(kept=COMPACTED)
    topic = NAMES.changelog(generation, "users_ui")
    board.write(generation, users(*range(ROWS)))
    board.switch(generation)
    load, moments = Load(board), random.Random(35)
    folder = eager.storage / "server"

    def unfinished() -> list[Path]:
        return list(folder.glob(f"{topic}.{eager.pid}"))

    def starts(*said: str) -> None:
        """It begins as expected, and with what Kafka had when it began; what another has left unfinished is gone."""
        eager.start()
        exported = answer(f"{eager.url}/api/tables/users_ui/export?format=json", KEY)
        assert [(row["userId"], row["age"]) for row in orjson.loads(exported or "")] == load.expected()
        found = [line for line in eager.said().splitlines() if 'event="snapshot ' in line and "written" not in line]
        assert [word for word, line in zip(said, found, strict=True) if word not in line] == []
        assert {file.name for file in folder.glob("*")} <= {f"{topic}.rows", f"{topic}.{eager.pid}"}

    starts()
    load.step_until((folder / f"{topic}.rows").exists)
    for is_writing in (True, False, True):
        if is_writing:
            load.step_until(lambda: unfinished() and eager.kill_if(unfinished))
            assert unfinished()
        else:
            for _ in range(moments.randrange(50)):
                load.step()
            eager.kill()
        starts("snapshot loaded")
    eager.kill()

    # Kafka tidies up what has come since.
    begun = TopicPartition(topic, 0, int(time.time() * 1000))
    consumer = Consumer({"bootstrap.servers": kafka, "group.id": "tests"})
    load.step()
    [first] = consumer.offsets_for_times([begun])
    load.step_until(lambda: consumer.offsets_for_times([begun])[0].offset > first.offset, until)
    consumer.close()
    starts("snapshot loaded")
    eager.kill()

    # Made anew, with as many records, it is another topic.
    end = board.ends(generation)["users_ui"]
    admin = Admin({"bootstrap.servers": kafka})
    admin.delete([topic])
    wait(lambda: topic not in admin.partitions())
    admin.create_changelogs([topic])
    load.rows = users(*range(1_000, 1_000 + end))
    board.write(generation, load.rows)
    starts("snapshot ignored")
