"""The live-table server over a real broker: the test writes what the pipeline would, and looks through WebSockets."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
import rows as oracle
from live import KEY, USERS, Board, Client, Running, at, close_code, get, serving, users, wait
from ports import closed_port

from liveboard.config import Secret, ServerSettings
from liveboard.config.values import RowCaps
from liveboard.contract import frames
from liveboard.contract.errors import LiveboardError
from liveboard.contract.names import Names
from liveboard.contract.schema import TS, Column
from liveboard.contract.status import STALE_AFTER_S, Phase
from liveboard.kafka.admin import Admin
from liveboard.kafka.broker import Broker
from liveboard.serving.catalogue import Catalogue
from liveboard.serving.feed import Feed
from liveboard.serving.server import LiveServer

NAMES = Names()

pytestmark = pytest.mark.integration


def test_a_table_ticks(board: Board, running: Running) -> None:
    with Client(running.port) as client:
        ready = client.receive()
        columns = [
            {"name": "userId", "type": "string"},
            {"name": "age", "type": "int64"},
            {"name": "ts", "type": "timestamp"},
        ]
        assert {"name": "users_ui", "columns": columns, "rows": 10, "kind": ""} in ready["tables"]
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
            "insert": 0,
        }
        board.write(str(board.live), users(10))
        assert client.receive() == {
            "ev": "delta",
            "id": 1,
            "version": 3,
            "total": 11,
            "rows": [],
            "drop": 0,
            "insert": 0,
        }
        board.write(str(board.live), {"0-0": None})
        client.until(lambda: client.totals[1] == 10)
        assert [key for key, _ in client.rows[1]] == ["0-1", "0-2", "0-3", "0-4", "0-5"]


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
                query: dict[str, Any] = {part: options.get(part) for part in ("sort", "filter", "search")}
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
            assert running.server.catalogue.live == before
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
        wait(lambda: before not in {table.generation for table in running.server.catalogue})
        wait(lambda: running.server.views.mirrors == 0)
        board.write(after, users(101))
        client.until(lambda: client.totals[3] == 2)


def test_a_closed_generation_is_served_until_the_next_one_is_loaded(board: Board, running: Running) -> None:
    before, after = str(board.live), board.build()
    with running.client() as client:
        client.subscribe(1)
        board.switch(after, ahead=1)
        board.close(before)
        wait(lambda: running.server.catalogue.status and before not in running.server.catalogue.status.generations)
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


def test_the_board_can_come_after_the_server(kafka: str) -> None:
    board = Board(kafka)
    board.forget()
    with serving(kafka) as running, running.client() as client:
        assert client.subscribe(1)["code"] == "unknown_table"
        status, answer = get(running, "/readyz", key=None)
        assert (status, answer["error"]["code"]) == (503, "not_ready")
        generation = board.build()
        board.announce(phase=Phase.BUILDING)
        wait(lambda: running.server.catalogue.status)
        assert client.subscribe(2, "orchestrator_status")["total"] == 1
        assert client.subscribe(3)["code"] == "unknown_table"
        assert "nothing is live yet" in get(running, "/readyz", key=None)[1]["error"]["message"]
        board.write(generation, users(1, 2))
        board.switch(generation)
        running.bound(generation)
        assert client.subscribe(4)["total"] == 2
        wait(lambda: get(running, "/readyz", key=None) == (200, {"status": "ready", "generation": generation}))
        Admin({"bootstrap.servers": kafka}).create_changelogs([NAMES.verdicts])
        assert client.subscribe(5, "control_raw")["total"] == 0
        board.write_topic(NAMES.verdicts, {"0-0": [0, 0, "{}", "rejected", "why", at(1)]})
        client.until(lambda: client.totals[5] == 1)


def test_b17_the_status_is_one_row_whatever_happens(board: Board, running: Running) -> None:
    with running.client() as client:
        client.subscribe(1, "orchestrator_status")
        for text in ("one", "two", "three"):
            board.announce(message=text, last_applied=at(1))
            client.until(lambda text=text: client.rows[1][0][1][5] == text)  # type: ignore[misc]
            row = client.rows[1][0][1]
            assert row == [f"users-{board.live}", "left", at(1), board.live, "live", text, None, None, None, None]
            assert client.totals[1] == 1


def test_a_pipeline_that_has_said_nothing_for_long_is_stale_until_it_says_something(
    board: Board, running: Running
) -> None:
    with running.client() as client:
        client.subscribe(1, "orchestrator_status")
        board.announce(seconds_ago=STALE_AFTER_S + 1, message="the Spark process has died")
        client.until(lambda: client.rows[1][0][1][4] == "stale")
        message = client.rows[1][0][1][5]
        assert message.startswith("nothing has been heard from the pipeline since 20")
        assert message.endswith("; the last was: the Spark process has died")
        board.announce()
        client.until(lambda: client.rows[1][0][1][4:6] == ["live", ""])


def test_a_board_that_begins_later_than_its_server_is_heard_of(board: Board) -> None:
    board.forget()
    # A client that knows one of the board's topics must not remember that the other one is missing.
    Admin({"bootstrap.servers": board.bootstrap}).create_changelogs([NAMES.verdicts])
    with serving(board.bootstrap) as running:
        wait(lambda: running.server.catalogue.get(None, "control_raw") is not None)
        again = Board(board.bootstrap)
        generation = again.build()
        again.write(generation, users(1))
        again.switch(generation)
        running.bound(generation)


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


def test_b44_while_the_broker_is_away_the_tables_stay_and_the_status_says_so(tmp_path: Path) -> None:
    with Broker(tmp_path, closed_port()) as broker:
        board = Board(broker.bootstrap_servers)
        generation = board.build()
        board.write(generation, users(*range(3)))
        board.switch(generation)
        with serving(broker.bootstrap_servers) as running, running.client() as client:
            running.bound(generation)
            client.subscribe(1)
            client.subscribe(3, "orchestrator_status")
            broker.stop()
            assert client.subscribe(2, sort=[["age", "desc"]])["total"] == 3
            assert get(running, "/readyz", key=None)[0] == 200
            client.until(lambda: client.rows[3][0][1][4] == "away")
            assert "found none" in get(running, "/readyz", key=None)[1]["problem"]
            message = client.rows[3][0][1][5]
            assert message.startswith("Kafka has not answered since 20")
            assert f"expected a Kafka broker at {broker.bootstrap_servers}, found none" in message
            broker.start()
            board.announce()
            client.until(lambda: client.rows[3][0][1][4] == "live")
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


@pytest.mark.parametrize(("owner", "part"), [(Feed, "_read"), (Catalogue, "status_changed")])
def test_a_server_whose_feed_fails_ends_with_a_sentence(
    board: Board, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, owner: type, part: str
) -> None:
    def fails(*_: Any) -> None:
        raise ZeroDivisionError("the test's own")

    monkeypatch.setattr(owner, part, fails)
    server = LiveServer(ServerSettings(port=0, psk=Secret(KEY)), {"bootstrap.servers": board.bootstrap}, NAMES)
    with pytest.raises(LiveboardError, match=r"cannot keep its tables up to date .* \(ZeroDivisionError\)"):
        server.run(threading.Event())
    assert "the test's own" in caplog.text
