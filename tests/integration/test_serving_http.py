"""The live-table server over HTTP: its endpoints, control, charts and metrics."""

from __future__ import annotations

import json
import re
import time
from typing import Any
from urllib.parse import urlencode

import pytest
from confluent_kafka import Consumer, TopicPartition
from live import KEY, Board, Running, at, get, users, wait
from msgspec.structs import replace as changed

from liveboard import __version__
from liveboard.config import Secret
from liveboard.contract.names import Names
from liveboard.contract.status import PendingRepairs
from liveboard.kafka.admin import Admin
from liveboard.serving.login import make_token

pytestmark = pytest.mark.integration


def test_http(board: Board, running: Running) -> None:
    assert get(running, "/healthz", key=None) == (200, {"status": "ok", "server": f"liveboard {__version__}"})
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
    def metrics() -> str:
        return str(get(running, "/metrics", key=None)[1])

    live = str(board.live)
    waiting = PendingRepairs(keys=3, since=time.time() - 60)
    board.generations[live] = changed(board.generations[live], repairs=waiting)
    board.announce()
    with running.client() as client:
        client.subscribe(1)
        client.subscribe(2, sort=[["age", "asc"]])
        board.write(live, users(10))
        client.until(lambda: len(client.rows[1]) == 11)
        place = f'{{generation="{live}",table="users_ui"}}'
        expected = {
            f"liveboard_rows{place} 11.0",
            f"liveboard_updates_total{place} 11.0",
            f"liveboard_feed_lag{place} 0.0",
            f"liveboard_generation {live[1:]}.0",
            f'liveboard_pending_repairs{{generation="{live}"}} 3.0',
            "liveboard_viewers 1.0",
            "liveboard_subscriptions 2.0",
            "liveboard_windows 2.0",
            "liveboard_mirrors 1.0",
            "liveboard_ready 1.0",
            "liveboard_rejects 0.0",
            'liveboard_latency_seconds_count{table="users_ui"} 1.0',
        }
        wait(lambda: expected <= set(metrics().splitlines()))
        (age,) = re.findall(r"^liveboard_pending_repairs_age_seconds\S+ (\S+)$", metrics(), re.MULTILINE)
        assert 60 <= float(age) <= time.time() - waiting.since


def test_topics_to_choose_from(board: Board, running: Running) -> None:
    other = Names("another-board")
    hidden = ["liveboard-control", other.status, other.verdicts, other.control, other.changelog("g1", "users_ui")]
    shown = ["choose-me", "_me-too", "liveboard-news", "order-status"]
    admin = Admin({"bootstrap.servers": board.bootstrap})
    admin.create([*shown, *hidden])
    status, answer = get(running, "/api/topics")
    assert status == 200
    admin.delete([*shown, *hidden])
    assert {*shown, *hidden} & set(answer["topics"]) == set(shown)
    assert not any(map(Names().owns, answer["topics"]))
    assert answer["joinKinds"] == ["left", "inner", "asof"]
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
    assert few["distribution"] == {"low": 3, "high": 3, "counts": [1], "mean": 3, "sum": 3}
    names = chart(column="userId", filter='[["age","<",2]]')
    assert names["frequencies"] == [{"value": "u0", "rows": 1}, {"value": "u1", "rows": 1}]
    assert chart(column="age", search="nobody")["distribution"] is None
    board.write(str(board.live), users(0, age=100))
    wait(lambda: chart(column="age")["distribution"]["high"] == 100)
    assert get(running, "/api/tables/users_ui/chart?column=shoe")[0] == 400
