"""The server and its viewers' connections: logins, frames that are wrong, viewers that do not read or vanish."""

from __future__ import annotations

import contextlib
import json
import logging
import socket
from pathlib import Path
from typing import Any

import pytest
from live import KEY, Board, Client, Running, at, close_code, get, serving, users, wait
from websockets.client import ClientProtocol
from websockets.exceptions import ConnectionClosed, InvalidState
from websockets.protocol import State
from websockets.uri import parse_uri

from liveboard.config import Secret
from liveboard.contract import frames
from liveboard.contract.schema import TS, Column
from liveboard.serving.limits import Limits
from liveboard.serving.log import LineFormatter
from liveboard.serving.login import make_token

pytestmark = pytest.mark.integration


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
    ({"table": ""}, "bad_frame"),
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


@pytest.mark.parametrize(("frame", "code"), [(b"\xff", 1007), (b"x" * (frames.MAX_CLIENT_FRAME_BYTES + 1), 1009)])
def test_who_sends_on_after_a_broken_frame_is_told_why_it_is_sent_away(
    running: Running, frame: bytes, code: int
) -> None:
    for _ in range(5):
        with running.client() as client:
            client.socket.send(frame, text=True)
            # Sent while the server hangs up; what it has not read by then must not reset the connection.
            with contextlib.suppress(ConnectionClosed):
                for _ in range(500):
                    client.socket.send("x" * 1_000)
            assert close_code(client) == code


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
    assert len(next(table for table in running.server.catalogue if table.name == "users_ui")) == 10


def test_beats_come_by_themselves(board: Board) -> None:
    with serving(board.bootstrap, limits=Limits(beat_every_s=0.05)) as running, running.client() as client:
        assert json.loads(client.socket.recv(60)) == {"ev": "beat"}


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
