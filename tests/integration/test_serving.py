"""The live-table server over a real broker: the test writes what the pipeline would, and looks through WebSockets."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
import rows as oracle
from confluent_kafka import Consumer, TopicPartition
from live import KEY, USERS, Board, Client, Running, at, serving, users, wait
from websockets.client import ClientProtocol
from websockets.exceptions import ConnectionClosed, InvalidState
from websockets.protocol import State
from websockets.uri import parse_uri

from liveboard.config import Secret, ServerSettings
from liveboard.config_values import RowCaps
from liveboard.contract import frames
from liveboard.contract.names import CONTROL_CHANGELOG
from liveboard.contract.schema import TS, Column
from liveboard.contract.status import STALE_AFTER_S, Phase
from liveboard.errors import LiveboardError
from liveboard.kafka.admin import Admin
from liveboard.kafka.broker import Broker
from liveboard.serving.catalogue import Catalogue
from liveboard.serving.feed import Feed
from liveboard.serving.hub import Limits
from liveboard.serving.log import LineFormatter
from liveboard.serving.login import make_token
from liveboard.serving.server import LiveServer

pytestmark = pytest.mark.integration


@pytest.fixture
def board(kafka: str) -> Board:
    """A board with a live generation of ten users."""
    board = Board(kafka)
    generation = board.build()
    board.write(generation, users(*range(10)))
    board.switch(generation)
    return board


@pytest.fixture
def running(board: Board) -> Iterator[Running]:
    """A server that shows the board."""
    with serving(board.bootstrap) as running:
        running.bound(str(board.live))
        yield running


def get(running: Running, path: str, key: str | None = KEY, body: bytes | None = None) -> tuple[int, Any]:
    """What the server answers over HTTP."""
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    request = urllib.request.Request(f"http://127.0.0.1:{running.port}{path}", body, headers)
    try:
        with urllib.request.urlopen(request) as answer:
            text = answer.read()
            return answer.status, json.loads(text) if answer.headers[
                "Content-Type"
            ] == "application/json" else text.decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def close_code(client: Client) -> int:
    """With which code the server closes."""
    with pytest.raises(ConnectionClosed) as caught:
        client.until(lambda: False)
    assert caught.value.rcvd is not None
    return caught.value.rcvd.code


def test_a_table_ticks(board: Board, running: Running) -> None:
    with Client(running.port) as client:
        ready = client.receive()
        columns = [
            {"name": "userId", "type": "string"},
            {"name": "age", "type": "int64"},
            {"name": "ts", "type": "timestamp"},
        ]
        assert {"name": "users_ui", "columns": columns, "rows": 10} in ready["tables"]
        assert {table["name"] for table in ready["tables"]} == {"users_ui", "control_raw", "orchestrator_status"}
        snapshot = client.subscribe(1, size=5)
        assert (snapshot["generation"], snapshot["total"], snapshot["offset"]) == (board.live, 10, 0)
        assert snapshot["columns"] == columns
        assert client.rows[1] == list(users(*range(5)).items())
        board.write(str(board.live), users(3, age=99))
        assert client.receive() == {
            "ev": "delta",
            "id": 1,
            "version": 2,
            "total": 10,
            "rows": [[3, "0-3", ["u3", 99, at(3)]]],
            "drop": 0,
        }
        board.write(str(board.live), users(10))
        assert client.receive() == {"ev": "delta", "id": 1, "version": 3, "total": 11, "rows": [], "drop": 0}
        board.write(str(board.live), {"0-0": None})
        client.until(lambda: client.totals[1] == 10)
        assert [key for key, _ in client.rows[1]] == ["0-1", "0-2", "0-3", "0-4", "0-5"]


def test_b19_without_the_key_the_connection_is_closed(running: Running) -> None:
    asked: dict[str, Any] = {"op": "subscribe", "id": 1, "table": "users_ui"}
    for frame in ({"op": "auth", "psk": "wrong"}, asked, {}):
        with Client(running.port, psk=None) as client:
            client.send(**frame)
            assert client.receive()["code"] == "unauthorized"
            assert close_code(client) == frames.UNAUTHORIZED


def test_b19_a_key_that_comes_too_late_is_refused_and_another_protocol_too(board: Board) -> None:
    with (
        serving(board.bootstrap, limits=Limits(auth_within_s=0.05)) as running,
        Client(running.port, psk=None) as client,
    ):
        assert client.receive()["code"] == "unauthorized"
        assert close_code(client) == frames.UNAUTHORIZED
    with serving(board.bootstrap) as running, Client(running.port, psk=None) as client:
        client.send(op="auth", psk=KEY, protocol=2)
        assert client.receive()["message"] == "expected protocol 1, found 2"
        assert close_code(client) == frames.UNSUPPORTED


ERRORS: list[tuple[dict[str, Any], str]] = [
    ({"table": "no_such_table"}, "unknown_table"),
    ({"table": "users_ui", "generation": "g1"}, "unknown_table"),
    ({"table": "control_raw", "generation": "g1"}, "unknown_table"),
    ({"table": "users-ui"}, "bad_name"),
    ({"table": "users_ui\n"}, "bad_name"),
    ({"table": ""}, "bad_name"),
    ({"table": "users_ui", "size": 0}, "bad_window"),
    ({"table": "users_ui", "size": 10_001}, "bad_window"),
    ({"table": "users_ui", "offset": -1}, "bad_window"),
    ({"table": "users_ui", "offset": 2**60}, "bad_window"),
    ({"table": "users_ui", "filter": [["age", "=", "x"]]}, "bad_filter"),
    ({"table": "users_ui", "filter": [["nobody", "=", "x"]]}, "bad_filter"),
    ({"table": "users_ui", "sort": [["nobody", "asc"]]}, "bad_filter"),
    ({"table": "users_ui", "sort": [["age", "up"]]}, "bad_frame"),
    ({"table": "users_ui", "size": "5"}, "bad_frame"),
]


def test_errors_say_their_code_and_leave_nothing_behind(running: Running) -> None:
    with running.client() as client:
        for asked, code in ERRORS:
            error = client.subscribe(7, **asked)
            assert (error["ev"], error["id"], error["code"]) == ("error", 7, code), asked
            assert error["message"].startswith("expected ")
            assert running.server.views.windows == 0
        assert client.subscribe(7)["ev"] == "snapshot"


EXAMPLES = json.loads(Path(frames.__file__).with_name("frames.json").read_text())


def test_bad_frames_of_every_kind_are_answered_and_the_connection_goes_on(running: Running) -> None:
    with running.client() as client:
        assert client.subscribe(1)["ev"] == "snapshot"
        for example in EXAMPLES["bad"]:
            client.socket.send(example["text"])
            answer = client.receive()
            assert (answer["ev"], answer["code"], answer["id"]) == ("error", "bad_frame", example["id"])
        client.socket.send(b'{"op":"unsubscribe","id":1}')
        assert client.receive()["message"] == "expected a text frame, found a binary one"
        client.send(op="auth", psk=KEY)
        assert client.receive()["code"] == "bad_frame"
        client.send(op="subscribe", id=1, table="users_ui")
        assert client.receive()["message"] == "expected a new id, found 1, which is in use"
        client.send(op="window", id=2, offset=0)
        assert (client.receive()["code"], client.frames[-1]["id"]) == ("bad_window", 2)
        client.send(op="window", id=1, size=0)
        assert client.receive()["code"] == "bad_window"
        client.send(op="unsubscribe", id=1)
        client.send(op="unsubscribe", id=1)
        assert client.subscribe(1, size=1)["total"] == 10
    with running.client() as client:
        client.socket.send("x" * (frames.MAX_CLIENT_FRAME_BYTES + 1))
        assert close_code(client) == 1009


def test_too_many_and_overloaded(board: Board) -> None:
    with serving(board.bootstrap, limits=Limits(viewers=1, subscriptions=2)) as running:
        running.bound(str(board.live))
        with running.client() as client:
            assert [client.subscribe(id)["ev"] for id in (1, 2)] == ["snapshot", "snapshot"]
            assert client.subscribe(3)["code"] == "too_many"
            client.send(op="unsubscribe", id=1)
            assert client.subscribe(3)["ev"] == "snapshot"
            with Client(running.port, psk=None) as other:
                assert other.receive()["code"] == "overloaded"
                assert close_code(other) == frames.OVERLOADED
        wait(lambda: not running.server.hub.viewers)
        with running.client() as again:
            assert again.subscribe(1)["ev"] == "snapshot"


def test_b23_windows_move_sort_filter_and_search(board: Board, running: Running) -> None:
    everything = list(users(*range(10)).items())
    with running.client() as client:
        assert client.subscribe(1)["offset"] == 0
        assert client.rows[1] == everything

        def moved(**options: Any) -> list[Any]:
            client.send(op="window", id=1, **options)
            client.receive_ev("snapshot")
            return client.rows[1]

        assert moved(offset=4, size=3) == everything[4:7]
        assert moved(sort=[["age", "desc"]]) == everything[::-1][4:7]
        assert moved(offset=0, filter=[["age", ">", 3]]) == everything[:6:-1]
        assert client.totals[1] == 6
        assert moved(search="U5") == [everything[5]]
        assert moved(sort=None, filter=[], search=None) == everything[:3]
        client.send(op="window", id=1, filter=[["age", "contains", "x"]])
        assert client.receive()["code"] == "bad_filter"
        board.write(str(board.live), users(1, age=77))
        client.receive_ev("delta")
        assert client.rows[1][1] == ("0-1", ["u1", 77, at(1)])


def test_deltas_lead_to_what_a_fresh_snapshot_shows_and_two_clients_see_the_same(
    board: Board, running: Running
) -> None:
    draw = random.Random(5)
    model: dict[str, list[Any]] = users(*range(10))
    asked: list[dict[str, Any]] = [
        {"offset": 0, "size": 300},
        {"offset": 5, "size": 7},
        {"sort": [["age", "desc"]], "size": 9},
        {"filter": [["age", "between", [20, 60]]], "sort": [["userId", "asc"]], "offset": 2, "size": 6},
        {"search": "U1"},
    ]
    with running.client() as one, running.client() as two:
        for id, options in enumerate(asked):
            one.subscribe(id, **options)
        for round_ in range(12):
            changes: dict[str, list[Any] | None] = {}
            for n in draw.choices(range(40), k=draw.randint(1, 15)):
                changes[f"0-{n}"] = None if draw.random() < 0.2 else [f"u{n}", draw.randint(0, 99), at(n)]
            for key, row in changes.items():
                if row is None:
                    model.pop(key, None)
                else:
                    model[key] = row
            board.write(str(board.live), changes)
            rows = [(key, tuple(row)) for key, row in sorted(model.items(), key=lambda item: item[1][-1])]
            for id, options in enumerate(asked):
                query = {part: options.get(part) for part in ("sort", "filter", "search")}
                found = oracle.queried(rows, USERS, **query)
                begin, size = options.get("offset", 0), options.get("size", 300)
                expected = [(key, list(row)) for key, row in found[begin : begin + size]]
                one.until_shown(id, expected, len(found))
                other = 100 + 10 * round_ + id
                two.subscribe(other, **options)
                two.until_shown(other, expected, len(found))
                two.send(op="unsubscribe", id=other)
    wait(lambda: not running.server.hub.viewers and running.server.views.windows == 0)
    assert {frame["ev"] for frame in one.frames} == {"ready", "snapshot", "delta"}


def test_b15_a_switch_in_the_midst_of_deltas(board: Board, running: Running) -> None:
    """Nobody sees an error, an empty table or a mixture; every frame is wholly of one generation."""
    before = str(board.live)
    after = board.build()
    board.announce()
    stopping = threading.Event()

    def tick() -> None:
        writer, number = Board(board.bootstrap), 0
        while not stopping.is_set():
            number += 1
            writer.write(before, {"0-3": ["u3", number, at(3)]})

    ticking = threading.Thread(target=tick)
    with running.client() as client:
        client.subscribe(1)
        client.subscribe(2, sort=[["age", "desc"]], size=4)
        client.subscribe(3, generation=before)
        client.subscribe(4, "orchestrator_status")
        ticking.start()
        try:
            for _ in range(20):
                client.receive()
            board.write(after, {f"0-{n}": [f"new{n}", n, at(n)] for n in range(10)})
            board.switch(after, ahead=5)
            for _ in range(20):
                client.receive()
            assert running.server.hub.catalogue.live == before
            assert {client.generations[id] for id in (1, 2, 3)} == {before}
            board.write(after, {f"0-{n}": [f"new{n}", n, at(n)] for n in range(10, 15)})
            client.until(lambda: client.generations[1] == client.generations[2] == after)
            client.until(lambda: client.rows[4][0][1][3] == after)
            for _ in range(20):
                client.receive()
        finally:
            stopping.set()
            ticking.join()
        assert not [frame for frame in client.frames if frame["ev"] == "error"]
        assert client.generations[3] == before
        assert [key for key, _ in client.rows[1]] == [f"0-{n}" for n in range(15)]
        assert client.totals[2] == 15
        switched: dict[int, int] = {}
        for at_, frame in enumerate(client.frames):
            if frame["ev"] == "rebound":
                assert frame["generation"] == after
                following = client.frames[at_ + 1]
                assert (following["ev"], following["id"], following["generation"]) == ("snapshot", frame["id"], after)
                switched[frame["id"]] = at_
        assert switched.keys() == {1, 2}
        for at_, frame in enumerate(client.frames):
            if frame.get("id") in switched and frame["ev"] in ("snapshot", "delta"):
                named = frame["rows"] if frame["ev"] == "snapshot" else [row for _, _, row in frame["rows"]]
                is_new = at_ > switched[frame["id"]]
                assert all(row[0].startswith("new") == is_new for row in named)
                assert frame["total"] == (15 if is_new else 10)


def test_b16_a_pinned_generation_stays_until_it_is_closed(board: Board, running: Running) -> None:
    before = str(board.live)
    after = board.build()
    board.write(after, users(100))
    with running.client() as client:
        client.subscribe(1, generation=before)
        client.subscribe(2, generation=before, sort=[["age", "desc"]])
        board.switch(after)
        running.bound(after)
        board.write(before, users(4, age=44))
        client.until(lambda: client.rows[1][4][1][1] == 44 and client.rows[2][0][1][1] == 44)
        assert client.subscribe(3)["total"] == 1
        assert client.subscribe(4, generation=before)["total"] == 10
        board.close(before)
        for id in (1, 2, 4):
            client.until(lambda id=id: any(f["ev"] == "error" and f["id"] == id for f in client.frames))  # type: ignore[misc]
        assert {f["code"] for f in client.frames if f["ev"] == "error"} == {"unknown_table"}
        assert client.subscribe(5, generation=before)["code"] == "unknown_table"
        wait(lambda: before not in {table.generation for table in running.server.hub.catalogue})
        wait(lambda: running.server.views.mirrors == 0)
        board.write(after, users(101))
        client.until(lambda: client.totals[3] == 2)


def test_a_closed_generation_is_served_until_the_next_one_is_loaded(board: Board, running: Running) -> None:
    before, after = str(board.live), board.build()
    with running.client() as client:
        client.subscribe(1)
        board.switch(after, ahead=1)
        board.close(before)
        wait(
            lambda: (
                running.server.hub.catalogue.status and before not in running.server.hub.catalogue.status.generations
            )
        )
        assert client.subscribe(2)["generation"] == before
        board.write(after, users(7))
        client.until(lambda: client.generations.get(1) == client.generations[2] == after)
        assert client.rows[1] == client.rows[2] == list(users(7).items())
        assert "error" not in {frame["ev"] for frame in client.frames}


def test_b25_a_changed_schema_comes_with_its_rows(board: Board, running: Running) -> None:
    with running.client() as client:
        client.subscribe(1)
        client.subscribe(2, filter=[["age", ">", 3]])
        after = board.build({"users_ui": (Column("mail", "string"), TS)})
        board.write(after, {"0-0": ["a@b", at(0)]})
        board.switch(after)
        client.until(lambda: client.generations[1] == after)
        client.until(lambda: any(frame["ev"] == "error" for frame in client.frames))
        snapshot = next(f for f in client.frames if f["ev"] == "snapshot" and f["generation"] == after)
        assert [column["name"] for column in snapshot["columns"]] == ["mail", "ts"]
        assert snapshot["rows"] == [["a@b", at(0)]]
        error = next(f for f in client.frames if f["ev"] == "error")
        assert (error["id"], error["code"]) == (2, "bad_filter")


def test_b7_after_a_restart_rows_are_in_the_order_of_arrival(board: Board, running: Running) -> None:
    """Changelogs keep the last record of a key, so what changed last comes last."""
    with running.client() as client:
        client.subscribe(1)
        board.write(str(board.live), users(2, age=50))
        client.until(lambda: client.rows[1][2][1][1] == 50)
        seen = client.rows[1]
    generation = board.build()
    order = [5, 1, 9, 0, 3, 7, 8, 6, 4]
    board.write(generation, users(*order))
    board.write(generation, users(2, age=50))
    board.switch(generation)
    with serving(board.bootstrap) as restarted:
        restarted.bound(generation)
        with restarted.client() as client:
            client.subscribe(1)
            assert client.rows[1] == seen


def test_b7_replicas_that_started_at_different_times_have_the_same_order(board: Board, running: Running) -> None:
    """Rows overtake each other by a little on their way, and windows of any place follow."""
    with running.client() as viewer:
        viewer.subscribe(1)
        viewer.subscribe(2, offset=11, size=3)
        for numbers in ([12, 10], [11], [17, 14, 16], [13, 15, 19, 18]):
            board.write(str(board.live), users(*numbers))
        viewer.until(lambda: len(viewer.rows[1]) == 20 and len(viewer.rows[2]) == 3)
        viewer.until(lambda: [key for key, _ in viewer.rows[1]] == [f"0-{n}" for n in range(20)])
        viewer.until(lambda: [key for key, _ in viewer.rows[2]] == ["0-11", "0-12", "0-13"])
        with serving(board.bootstrap) as other:
            other.bound(str(board.live))
            with other.client() as client:
                client.subscribe(1)
                assert client.rows[1] == viewer.rows[1]


def test_clients_of_a_server_that_stops_are_told_to_come_back(board: Board) -> None:
    with serving(board.bootstrap) as running:
        running.bound(str(board.live))
        with running.client() as client:
            client.subscribe(1)
            client.subscribe(2, sort=[["age", "asc"]])
            running.stop()
            assert close_code(client) == frames.RESTART
    with serving(board.bootstrap, port=running.port) as again:
        again.bound(str(board.live))
        with again.client() as client:
            client.subscribe(1)
            assert client.rows[1] == list(users(*range(10)).items())


def test_a_viewer_that_does_not_read_slows_nobody_and_then_has_the_newest(board: Board, running: Running) -> None:
    wide = (Column("text", "string"), TS)
    generation = board.build({"users_ui": wide})
    text = "x" * 100_000
    board.write(generation, {f"0-{n}": [text, at(n)] for n in range(3)})
    board.switch(generation)
    running.bound(generation)
    with running.client() as slow, running.client() as fast:
        slow.send(op="subscribe", id=1, table="users_ui")
        fast.subscribe(1)
        for step in range(300):
            board.write(generation, {f"0-{step % 3}": [f"{step}{text}", at(step % 3)]})
            fast.until(lambda step=step: fast.rows[1][step % 3][1][0].startswith(f"{step}x"))  # type: ignore[misc]
        slow.until(lambda: 1 in slow.rows and slow.rows[1] == fast.rows[1])
        assert len([f for f in slow.frames if f.get("id") == 1]) < 300
        metrics = get(running, "/metrics", key=None)[1]
        conflations = [line for line in metrics.splitlines() if line.startswith("liveboard_conflations_total")]
        assert float(conflations[0].split()[-1]) > 0


def test_viewers_that_vanish_leave_nothing(board: Board, running: Running) -> None:
    hub, views = running.server.hub, running.server.views
    with running.client() as client:
        client.subscribe(1)
        client.subscribe(2, sort=[["age", "asc"]])
        assert (len(hub.viewers), hub.subscriptions, views.windows) == (1, 2, 2)
        # Half a frame, then nothing: the connection breaks off.
        client.socket.socket.sendall(b"\x81\xfe\x01")
        client.socket.socket.shutdown(socket.SHUT_RDWR)
        wait(lambda: (len(hub.viewers), hub.subscriptions, views.windows) == (0, 0, 0))
    with socket.create_connection(("127.0.0.1", running.port)) as raw:
        raw.sendall(b"GET /ws HTTP/1.1\r\nUpgrade: web")
    with running.client() as client:
        assert client.subscribe(1)["ev"] == "snapshot"


def test_a_viewer_that_asks_but_never_reads_is_sent_away(board: Board) -> None:
    with serving(board.bootstrap, limits=Limits(waiting=100)) as running:
        running.bound(str(board.live))
        client = Client(running.port)
        assert client.receive()["ev"] == "ready"
        # The library reads ahead on its own: take its socket and write past it.
        frame = "x" * 10
        with contextlib.suppress(InvalidState, OSError):
            while running.server.hub.viewers:
                for _ in range(1_000):
                    client.socket.protocol.send_text(frame.encode())
                client.socket.socket.sendall(b"".join(client.socket.protocol.data_to_send()))
        client.socket.socket.close()
        wait(lambda: not running.server.hub.viewers)


def test_a_viewer_that_leaves_without_reading_does_not_keep_the_server_from_stopping(board: Board) -> None:
    generation = board.build({"users_ui": (Column("text", "string"), TS)})
    board.write(generation, {f"0-{n}": ["x" * 100_000, at(n)] for n in range(200)})
    board.switch(generation)
    with serving(board.bootstrap) as running, socket.create_connection(("127.0.0.1", running.port)) as connection:
        running.bound(generation)
        viewer = ClientProtocol(parse_uri(f"ws://127.0.0.1:{running.port}/ws"))

        def send() -> None:
            connection.sendall(b"".join(viewer.data_to_send()))

        viewer.send_request(viewer.connect())
        send()
        while viewer.state is not State.OPEN:
            viewer.receive_data(connection.recv(4096))
        for frame in ({"op": "auth", "psk": KEY, "protocol": 1}, {"op": "subscribe", "id": 1, "table": "users_ui"}):
            viewer.send_text(json.dumps(frame).encode())
        send()
        # More is on its way to it than any buffer takes, so its connection stays half closed.
        wait(lambda: running.server.hub.subscriptions)
        viewer.send_close()
        send()
        wait(lambda: not running.server.hub.viewers)
        running.stop()


def test_b22_ten_thousand_subscriptions_leave_nothing_behind(board: Board, running: Running) -> None:
    hub, views = running.server.hub, running.server.views
    with running.client() as client:
        for id in range(10_000):
            options: dict[str, Any] = {"sort": [["age", "asc"]]} if id % 20 == 0 else {}
            client.send(op="subscribe", id=id, table="users_ui", offset=id % 7, **options)
            if id % 3 == 0:
                client.send(op="window", id=id, size=1 + id % 5)
            client.send(op="unsubscribe", id=id)
            if id % 500 == 0:
                client.subscribe(100_000 + id)
                client.send(op="unsubscribe", id=100_000 + id)
        client.subscribe(200_000)
        assert not [frame for frame in client.frames if frame["ev"] == "error"]
        wait(lambda: (hub.subscriptions, views.windows) == (1, 1))
        viewer = next(iter(hub.viewers))
        assert list(viewer.subscriptions) == [200_000]
        board.write(str(board.live), users(0, age=5))
        client.receive_ev("delta")
    wait(lambda: (len(hub.viewers), views.windows) == (0, 0))
    assert len(next(table for table in hub.catalogue if table.name == "users_ui")) == 10


def test_the_board_can_come_after_the_server(kafka: str) -> None:
    board = Board(kafka)
    board.forget()
    with serving(kafka) as running, running.client() as client:
        assert client.subscribe(1)["code"] == "unknown_table"
        status, answer = get(running, "/readyz", key=None)
        assert (status, answer["error"]["code"]) == (503, "not_ready")
        generation = board.build()
        board.announce(phase=Phase.BUILDING)
        wait(lambda: running.server.hub.catalogue.status)
        assert client.subscribe(2, "orchestrator_status")["total"] == 1
        assert client.subscribe(3)["code"] == "unknown_table"
        assert "nothing is live yet" in get(running, "/readyz", key=None)[1]["error"]["message"]
        board.write(generation, users(1, 2))
        board.switch(generation)
        running.bound(generation)
        assert client.subscribe(4)["total"] == 2
        assert get(running, "/readyz", key=None) == (200, {"status": "ready", "generation": generation})
        Admin({"bootstrap.servers": kafka}).create_changelogs([CONTROL_CHANGELOG])
        assert client.subscribe(5, "control_raw")["total"] == 0
        board.write_topic(CONTROL_CHANGELOG, {"0-0": [0, 0, "{}", "rejected", "why", at(1)]})
        client.until(lambda: client.totals[5] == 1)


def test_b17_the_status_is_one_row_whatever_happens(board: Board, running: Running) -> None:
    with running.client() as client:
        client.subscribe(1, "orchestrator_status")
        for text in ("one", "two", "three"):
            board.announce(message=text, last_applied=at(1))
            client.until(lambda text=text: client.rows[1][0][1][-1] == text)  # type: ignore[misc]
            row = client.rows[1][0][1]
            assert row == [f"users-{board.live}", "left", at(1), board.live, "live", text]
            assert client.totals[1] == 1


def test_a_pipeline_that_has_said_nothing_for_long_is_stale_until_it_says_something(
    board: Board, running: Running
) -> None:
    with running.client() as client:
        client.subscribe(1, "orchestrator_status")
        board.announce(seconds_ago=STALE_AFTER_S + 1, message="the Spark process has died")
        client.until(lambda: client.rows[1][0][1][-2] == "stale")
        message = client.rows[1][0][1][-1]
        assert message.startswith("nothing has been heard from the pipeline since 20")
        assert message.endswith("; the last was: the Spark process has died")
        board.announce()
        client.until(lambda: client.rows[1][0][1][-2:] == ["live", ""])


def test_max_rows_keeps_the_newest(board: Board) -> None:
    with serving(board.bootstrap, max_rows=RowCaps(1, {"users_ui": 5})) as running:
        running.bound(str(board.live))
        with running.client() as client:
            client.subscribe(1)
            assert [key for key, _ in client.rows[1]] == [f"0-{n}" for n in range(5, 10)]
            board.write(str(board.live), users(*range(10, 13)))
            client.until(lambda: [key for key, _ in client.rows[1]] == [f"0-{n}" for n in range(8, 13)])
            metrics = get(running, "/metrics", key=None)[1]
            assert f'liveboard_evicted_rows_total{{generation="{board.live}",table="users_ui"}} 8.0' in metrics


def test_http(board: Board, running: Running) -> None:
    assert get(running, "/healthz", key=None) == (200, {"status": "ok"})
    status, answer = get(running, "/api/tables")
    assert (status, answer["generation"]) == (200, board.live)
    assert next((table["name"], table["rows"]) for table in answer["tables"]) == ("users_ui", 10)
    parameters = {"offset": 1, "size": 2, "sort": '[["age","desc"]]', "filter": '[["age","<",8]]', "search": "U"}
    status, answer = get(running, f"/api/tables/users_ui?{urlencode(parameters)}")
    assert (status, answer["total"], answer["offset"], answer["generation"]) == (200, 8, 1, board.live)
    assert answer["keys"] == ["0-6", "0-5"]
    assert answer["rows"] == [["u6", 6, at(6)], ["u5", 5, at(5)]]
    assert get(running, f"/api/tables/users_ui?generation={board.live}")[1]["total"] == 10
    assert running.server.views.windows == 0


HTTP_ERRORS: list[tuple[str, str | None, int, str]] = [
    ("/api/tables", None, 401, "unauthorized"),
    ("/api/tables/users_ui", "wrong", 401, "unauthorized"),
    ("/api/nothing", KEY, 404, "not_found"),
    ("/api/control", KEY, 405, "bad_method"),
    ("/api/tables/nothing", KEY, 404, "unknown_table"),
    ("/api/tables/no-name", KEY, 400, "bad_name"),
    ("/api/tables/users_ui?size=0", KEY, 400, "bad_window"),
    ("/api/tables/users_ui?size=x", KEY, 400, "bad_window"),
    ("/api/tables/users_ui?sise=1", KEY, 400, "bad_frame"),
    ("/api/tables/users_ui?filter=x", KEY, 400, "bad_filter"),
    ("/api/tables/users_ui?filter=[[%22age%22,%22=%22,%22x%22]]", KEY, 400, "bad_filter"),
]


def test_http_errors(running: Running) -> None:
    for path, key, status, code in HTTP_ERRORS:
        found, answer = get(running, path, key)
        assert (found, answer["error"]["code"]) == (status, code), path
        assert answer["error"]["message"]


def test_control_messages_are_passed_on(board: Board, running: Running) -> None:
    Admin({"bootstrap.servers": board.bootstrap}).create(["liveboard-control"])
    message = b'{"usersTopic": "a", "accountsTopic": "b"}'
    status, answer = get(running, "/api/control", body=message)
    assert status == 202
    consumer = Consumer({"bootstrap.servers": board.bootstrap, "group.id": "test"})
    consumer.assign([TopicPartition("liveboard-control", answer["partition"], answer["offset"])])
    found = consumer.poll(60)
    consumer.close()
    assert found is not None
    assert found.value() == message
    for bad in (b"[]", b"{", b"\xff", b'"x"', b""):
        status, answer = get(running, "/api/control", body=bad)
        assert (status, answer["error"]["code"]) == (400, "bad_message")
    assert get(running, "/api/control", body=b"x" * 70_000)[0] == 413
    assert get(running, "/api/control", key="wrong", body=message)[0] == 401


def test_metrics(board: Board, running: Running) -> None:
    with running.client() as client:
        client.subscribe(1)
        client.subscribe(2, sort=[["age", "asc"]])
        board.write(str(board.live), users(10))
        client.until(lambda: len(client.rows[1]) == 11)
        place = f'{{generation="{board.live}",table="users_ui"}}'
        expected = {
            f"liveboard_rows{place} 11.0",
            f"liveboard_updates_total{place} 11.0",
            f"liveboard_feed_lag{place} 0.0",
            f"liveboard_generation {str(board.live)[1:]}.0",
            "liveboard_viewers 1.0",
            "liveboard_subscriptions 2.0",
            "liveboard_windows 2.0",
            "liveboard_mirrors 1.0",
            "liveboard_ready 1.0",
            "liveboard_rejects 0.0",
            'liveboard_latency_seconds_count{table="users_ui"} 1.0',
        }
        wait(lambda: expected <= set(get(running, "/metrics", key=None)[1].splitlines()))


def test_beats_come_by_themselves(board: Board) -> None:
    with serving(board.bootstrap, limits=Limits(beat_every_s=0.05)) as running, running.client() as client:
        assert json.loads(client.socket.recv(60)) == {"ev": "beat"}


def test_while_the_broker_is_away_the_tables_stay(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with Broker(tmp_path, port) as broker:
        board = Board(broker.bootstrap_servers)
        generation = board.build()
        board.write(generation, users(*range(3)))
        board.switch(generation)
        with serving(broker.bootstrap_servers) as running, running.client() as client:
            running.bound(generation)
            client.subscribe(1)
            broker.stop()
            assert client.subscribe(2, sort=[["age", "desc"]])["total"] == 3
            assert get(running, "/readyz", key=None)[0] == 200
            broker.start()
            board.write(generation, users(3))
            client.until(lambda: len(client.rows[1]) == len(client.rows[2]) == 4)
            assert "error" not in {frame["ev"] for frame in client.frames}


def test_the_command_serves_until_it_is_told_to_stop(board: Board, tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "LIVEBOARD_KAFKA_BOOTSTRAP_SERVERS": board.bootstrap,
        "LIVEBOARD_SERVER_PORT": "0",
        "LIVEBOARD_SERVER_PSK": KEY,
    }
    command = [sys.executable, "-m", "liveboard", "serve"]
    refused = subprocess.run(
        command, env={**environment, "LIVEBOARD_SERVER_PSK": ""}, cwd=tmp_path, capture_output=True, text=True
    )
    assert refused.returncode == 1
    assert refused.stderr.startswith("liveboard: server.psk: expected the key that viewers need, found nothing")
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=environment, cwd=tmp_path, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        port = int(line.partition(",")[0].rpartition(":")[2])
        with Client(port) as client:
            assert client.receive()["ev"] == "ready"
            process.send_signal(signal.SIGTERM)
            assert close_code(client) == frames.RESTART
        _, log = process.communicate(timeout=60)
        assert process.returncode == 0
        assert KEY not in log
        assert all(line.startswith("time=") for line in log.splitlines())


def test_topics_to_choose_from(board: Board, running: Running) -> None:
    Admin({"bootstrap.servers": board.bootstrap}).create(["choose-me", "_internal", "liveboard-control"])
    status, answer = get(running, "/api/topics")
    assert status == 200
    assert "choose-me" in answer["topics"]
    assert [name for name in answer["topics"] if name.startswith(("_", "liveboard"))] == []
    assert get(running, "/api/topics", key=None)[0] == 401


def test_a_login_link_is_exchanged_once(running: Running) -> None:
    body = json.dumps({"token": make_token(Secret(KEY))}).encode()
    assert get(running, "/api/login", None, body) == (200, {"key": KEY})
    assert get(running, "/api/login", None, body)[0] == 401
    assert get(running, "/api/login", None, b"[]")[0] == 400


def test_charts_are_over_all_rows_that_match(board: Board, running: Running) -> None:
    def chart(**parameters: str) -> Any:
        status, answer = get(running, f"/api/tables/users_ui/chart?{urlencode(parameters)}")
        assert status == 200
        return answer

    ages = chart(column="age")
    assert (ages["rows"], ages["distribution"]["low"], ages["distribution"]["high"]) == (10, 0, 9)
    assert sum(ages["distribution"]["counts"]) == 10
    assert [step["mean"] for step in ages["series"]] == list(range(10))
    assert ages["series"][1]["at"] - ages["series"][0]["at"] == 906
    few = chart(column="age", filter='[["age","=",3]]')
    assert few["distribution"] == {"low": 3, "high": 3, "counts": [1]}
    names = chart(column="userId", filter='[["age","<",2]]')
    assert names["frequencies"] == [{"value": "u0", "rows": 1}, {"value": "u1", "rows": 1}]
    assert chart(column="age", search="nobody")["distribution"] is None
    board.write(str(board.live), users(0, age=100))
    wait(lambda: chart(column="age")["distribution"]["high"] == 100)
    assert get(running, "/api/tables/users_ui/chart?column=shoe")[0] == 400


def test_b19_no_key_is_logged_whatever_level_is_set(board: Board, caplog: pytest.LogCaptureFixture) -> None:
    def everything() -> None:
        for name in (None, "uvicorn", *logging.root.manager.loggerDict):
            caplog.set_level(logging.DEBUG, name)

    wrong, token = "a key that is wrong", make_token(Secret(KEY))
    everything()
    with serving(board.bootstrap) as running:
        running.bound(str(board.live))
        for _ in range(2):
            with running.client() as client:
                client.subscribe(1)
            with Client(running.port, wrong) as client:
                assert client.receive()["code"] == "unauthorized"
                assert close_code(client) == frames.UNAUTHORIZED
            assert get(running, "/api/tables")[0] == 200
            assert get(running, "/api/tables", wrong)[0] == 401
            get(running, "/api/login", None, json.dumps({"token": token}).encode())
            everything()
    # The viewers are in this process too, and what their library logs is theirs.
    lines = [LineFormatter().format(record) for record in caplog.records if record.name != "websockets.client"]
    assert any("table loaded" in line for line in lines)
    assert [line for line in lines if KEY in line or wrong in line or token in line] == []


@pytest.mark.parametrize(("owner", "part"), [(Feed, "_read"), (Catalogue, "status_changed")])
def test_a_server_whose_feed_fails_ends_with_a_sentence(
    board: Board, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, owner: type, part: str
) -> None:
    def fails(*_: Any) -> None:
        raise ZeroDivisionError("the test's own")

    monkeypatch.setattr(owner, part, fails)
    server = LiveServer(ServerSettings(port=0, psk=Secret(KEY)), {"bootstrap.servers": board.bootstrap}, "control")
    with pytest.raises(LiveboardError, match=r"cannot keep its tables up to date .* \(ZeroDivisionError\)"):
        server.run(threading.Event())
    assert "the test's own" in caplog.text
