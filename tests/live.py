"""A live-table server in the hands of a test, a board that the test plays itself, and viewers."""

from __future__ import annotations

import json
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, Self

import msgspec
import pytest
from confluent_kafka import Producer
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from liveboard.config import Secret, ServerSettings
from liveboard.contract.board import View, Wiring
from liveboard.contract.names import Names, generation_id
from liveboard.contract.schema import TS, Column
from liveboard.contract.status import (
    STATUS_KEY,
    BoardStatus,
    GenerationRecord,
    Phase,
    State,
)
from liveboard.kafka.admin import Admin
from liveboard.serving.limits import Limits
from liveboard.serving.server import LiveServer

NAMES = Names()

PATIENCE_S = 120.0
KEY = "the test's own key"
USERS = (Column("userId", "string"), Column("age", "bigint"), TS)
# Generations of other tests are below.
_numbers = count(50_000)

Rows = Mapping[str, list[Any] | None]


def at(second: int) -> str:
    """A time in a row."""
    return f"2026-01-31T{9 + second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}.000000Z"


def users(*numbers: int, age: int = 0) -> dict[str, list[Any]]:
    """Rows of the table users_ui."""
    return {f"0-{n}": [f"u{n}", age or n, at(n)] for n in numbers}


class Board:
    """Writes what the pipeline and the orchestrator would write."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self._admin = Admin({"bootstrap.servers": bootstrap})
        self._producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 1, "log_level": 0})
        self.generations: dict[str, GenerationRecord] = {}
        self.live: str | None = None

    def forget(self) -> None:
        """As if no orchestrator had ever run here."""
        self._admin.delete([NAMES.status, NAMES.verdicts])

    def build(
        self,
        tables: Mapping[str, tuple[Column, ...]] | None = None,
        wiring: Wiring | None = None,
        fingerprint: Mapping[str, Any] | None = None,
        kept: Mapping[str, str] | None = None,
    ) -> str:
        """A new generation in state building; `kept` says how Kafka keeps its tables, beside what is so always."""
        name = generation_id(next(_numbers))
        tables = tables or {"users_ui": USERS}
        self._admin.create_changelogs([NAMES.changelog(name, table) for table in tables], kept)
        self._admin.create_changelogs([NAMES.status])
        wiring = wiring or Wiring({"users": f"users-{name}"}, {"final_ui": "left"})
        self.generations[name] = GenerationRecord(
            state=State.BUILDING, wiring=wiring, tables=tables, fingerprint=fingerprint or {}
        )
        return name

    def write(self, generation: str, rows: Rows, table: str = "users_ui") -> None:
        """Rows of a table, None for a removal; Kafka has them afterwards."""
        self.write_topic(NAMES.changelog(generation, table), rows)

    def write_topic(self, topic: str, rows: Rows) -> None:
        """Rows of any changelog."""
        for key, row in rows.items():
            value = None if row is None else msgspec.json.encode(row)
            self._producer.produce(topic, value, key)
            self._producer.poll(0)
        assert self._producer.flush(PATIENCE_S) == 0

    def ends(self, generation: str) -> dict[str, int]:
        """Where the changelogs of a generation end."""
        tables = self.generations[generation].tables
        found = self._admin.offsets({NAMES.changelog(generation, table): 1 for table in tables}, "latest")
        return {table: found[NAMES.changelog(generation, table)]["0"] for table in tables}

    def switch(self, generation: str, ahead: int = 0) -> None:
        """Makes a generation the live one, the one before a retiring one; `ahead` records are still to be written."""
        if self.live in self.generations:
            self._set(str(self.live), state=State.RETIRING)
        ends = {table: end + ahead for table, end in self.ends(generation).items()}
        self._set(generation, state=State.LIVE, complete_at=ends)
        self.live = generation
        self.announce()

    def written(self, generation: str) -> None:
        """Lets readers show a generation that is being built."""
        self._set(generation, complete_at=self.ends(generation))

    def close(self, generation: str) -> None:
        """Takes a generation out of the board."""
        del self.generations[generation]
        self.announce()

    def announce(self, seconds_ago: float = 0.0, **changes: Any) -> None:
        """Writes the status."""
        fields: dict[str, Any] = {
            "sources": ("users",),
            "live": self.live,
            "generations": self.generations,
            "phase": Phase.LIVE if self.live else Phase.BUILDING,
            **changes,
        }
        timestamp = int(1000 * (time.time() - seconds_ago))
        self._producer.produce(NAMES.status, BoardStatus(**fields).encode(), STATUS_KEY, timestamp=timestamp)
        assert self._producer.flush(PATIENCE_S) == 0

    def _set(self, generation: str, **changes: Any) -> None:
        self.generations[generation] = msgspec.structs.replace(self.generations[generation], **changes)


class Client:
    """A viewer: applies what comes, and insists on what the protocol promises."""

    def __init__(self, port: int, psk: str | None = KEY, **options: Any) -> None:
        url = f"ws://127.0.0.1:{port}/ws"
        self._connecting = connect(url, compression=None, max_size=None, **options)
        self.socket: ClientConnection = self._connecting.__enter__()
        self.frames: list[dict[str, Any]] = []
        self.rows: dict[int, list[tuple[str, list[Any]]]] = {}
        self.totals: dict[int, int] = {}
        self.generations: dict[int, str | None] = {}
        self._versions: dict[int, int] = {}
        if psk is not None:
            self.send(op="auth", psk=psk, protocol=1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: Any) -> None:
        self._connecting.__exit__(*exception)

    def send(self, **frame: Any) -> None:
        """A frame to the server."""
        self.socket.send(json.dumps(frame))

    def receive(self) -> dict[str, Any]:
        """The next frame, beats left out."""
        while True:
            frame: dict[str, Any] = json.loads(self.socket.recv(PATIENCE_S))
            if frame["ev"] != "beat":
                break
        self.frames.append(frame)
        self._apply(frame)
        return frame

    def until(self, done: Callable[[], object]) -> None:
        """Receives until something is so."""
        while not done():
            self.receive()

    def until_shown(self, id: int, rows: list[tuple[str, list[Any]]], total: int | None = None) -> None:
        """Receives until a subscription has these rows."""
        self.until(lambda: self.rows.get(id) == rows and total in (None, self.totals[id]))

    def receive_ev(self, ev: str) -> dict[str, Any]:
        """The next frame of a kind."""
        while (frame := self.receive())["ev"] != ev:
            pass
        return frame

    def subscribe(self, id: int, table: str = "users_ui", **options: Any) -> dict[str, Any]:
        """Subscribes; gives the answer."""
        self._versions.pop(id, None)
        self.send(op="subscribe", id=id, table=table, **options)
        while True:
            frame = self.receive()
            if frame.get("id") == id:
                return frame

    def _apply(self, frame: dict[str, Any]) -> None:
        if frame["ev"] not in ("snapshot", "delta"):
            return
        id = frame["id"]
        assert frame["version"] == self._versions.get(id, 0) + 1
        self._versions[id] = frame["version"]
        self.totals[id] = frame["total"]
        if frame["ev"] == "snapshot":
            self.generations[id] = frame["generation"]
            self.rows[id] = list(zip(frame["keys"], frame["rows"], strict=True))
            return
        rows = self.rows[id]
        rows[:0] = [("", [])] * frame["insert"]
        for index, key, row in frame["rows"]:
            if index < len(rows):
                rows[index] = (key, row)
            else:
                assert index == len(rows)
                rows.append((key, row))
        assert 0 <= frame["drop"] <= len(rows)
        self.rows[id] = rows[: len(rows) - frame["drop"]]


class Running:
    """A server that runs in a thread."""

    def __init__(
        self,
        bootstrap: str,
        limits: Limits | None = None,
        storage: Path | None = None,
        views: Sequence[View] = (),
        **options: Any,
    ) -> None:
        settings = ServerSettings(**{"port": 0, "psk": Secret(KEY), **options})
        self.server = LiveServer(settings, {"bootstrap.servers": bootstrap}, NAMES, limits, storage, views)
        self.port = int(self.server.address.rpartition(":")[2])
        self._stopping = threading.Event()
        self._started = threading.Event()
        self._thread = threading.Thread(target=self.server.run, args=(self._stopping, self._started.set), daemon=True)
        self._thread.start()
        assert self._started.wait(PATIENCE_S)

    def stop(self) -> None:
        """Stops it as a signal would."""
        self._stopping.set()
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive()

    def bound(self, generation: str) -> None:
        """Waits until names mean the generation."""
        wait(lambda: self.server.catalogue.live == generation)

    @contextmanager
    def client(self, **options: Any) -> Iterator[Client]:
        """A viewer that is let in."""
        with Client(self.port, **options) as client:
            assert client.receive()["ev"] == "ready"
            yield client


@contextmanager
def serving(bootstrap: str, **options: Any) -> Iterator[Running]:
    """A server for as long as it is needed."""
    running = Running(bootstrap, **options)
    try:
        yield running
    finally:
        running.stop()


def wait(done: Callable[[], object]) -> None:
    """Waits until something is so."""
    deadline = time.monotonic() + PATIENCE_S
    while not done():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)


def get(running: Running, path: str, key: str | None = KEY, body: bytes | None = None) -> tuple[int, Any]:
    """What the server answers over HTTP."""
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    request = urllib.request.Request(f"http://127.0.0.1:{running.port}{path}", body, headers)
    try:
        with urllib.request.urlopen(request) as answer:
            text, is_json = answer.read().decode(), answer.headers["Content-Type"] == "application/json"
            return answer.status, json.loads(text) if is_json else text
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def close_code(client: Client) -> int:
    """With which code the server closes."""
    with pytest.raises(ConnectionClosed) as caught:
        client.until(lambda: False)
    assert caught.value.rcvd is not None
    return caught.value.rcvd.code
