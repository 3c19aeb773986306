"""Views and boards that people keep: in Kafka, on every replica, over restarts."""

from __future__ import annotations

import asyncio
import json
import urllib.error
import urllib.request
from typing import Any
from urllib.parse import urlencode

import pytest
from live import KEY, PATIENCE_S, Board, Running, get, serving, wait
from secured import SecuredBroker

from liveboard.config import KeySettings, LimitSettings, Secret
from liveboard.contract.errors import LiveboardError
from liveboard.contract.frames import Role
from liveboard.contract.names import Names
from liveboard.kafka import security
from liveboard.kafka.admin import Admin
from liveboard.serving.auth import Grant
from liveboard.serving.catalogue import Catalogue
from liveboard.serving.feed import Feed
from liveboard.serving.keeping import Keeping
from liveboard.serving.saved import Place, Saved, SavedKind
from liveboard.serving.topic_writer import TopicWriter

pytestmark = pytest.mark.integration

WALL = "the wall's key"
KEYS = {"wall": KeySettings(name="wall", role="viewer", key=Secret(WALL))}
TABLE = {"kind": "view", "table": "users_ui"}


def send(running: Running, method: str, key: str, state: Any = None, **place: str) -> tuple[int, Any]:
    """What the server answers to a PUT or a DELETE."""
    body = json.dumps({"state": state}).encode() if method == "PUT" else None
    address = f"http://127.0.0.1:{running.port}/api/views?{urlencode(place)}"
    request = urllib.request.Request(address, body, {"Authorization": f"Bearer {key}"}, method=method)
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)["error"]


def kept(running: Running, key: str = KEY) -> list[tuple[str, bool, Any]]:
    """The names of what a key sees, whether it is shared, and its content."""
    status, answer = get(running, "/api/views", key)
    assert status == 200
    return sorted((each["name"], each["shared"], each["state"]) for each in answer["views"])


def test_b43_named_views_are_on_every_replica_and_survive_a_restart(board: Board) -> None:
    Admin({"bootstrap.servers": board.bootstrap}).delete([Names().saved])
    with serving(board.bootstrap, keys=KEYS) as one, serving(board.bootstrap, keys=KEYS) as other:
        assert kept(one) == kept(other, WALL) == []
        assert send(one, "PUT", KEY, {"sort": [["age", "desc"]]}, name="Oldest", shared="true", **TABLE) == (200, {})
        assert send(one, "PUT", WALL, 1, name="Wall", **TABLE) == (200, {})
        ours, walls = ("Oldest", True, {"sort": [["age", "desc"]]}), ("Wall", False, 1)
        assert kept(one, WALL) == [ours, walls]
        assert kept(one) == [ours]
        wait(lambda: kept(other, WALL) == [ours, walls])
        assert send(other, "PUT", WALL, 2, name="Wall", **TABLE) == (200, {})
        assert kept(other, WALL) == [ours, ("Wall", False, 2)]
        status, error = send(other, "PUT", WALL, 3, name="Oldest", shared="true", **TABLE)
        assert (status, error["code"]) == (403, "forbidden")
        assert "role admin" in error["message"]
        assert send(other, "DELETE", WALL, name="Oldest", shared="true", **TABLE)[0] == 403
        assert send(other, "DELETE", KEY, name="Oldest", shared="true", **TABLE) == (200, {})
        wait(lambda: kept(one, WALL) == [("Wall", False, 2)])
    with serving(board.bootstrap, keys=KEYS) as after:
        assert kept(after, WALL) == [("Wall", False, 2)]
        assert kept(after) == []
        Admin({"bootstrap.servers": board.bootstrap}).delete([Names().saved])


def test_requests_that_cannot_be_followed(running: Running) -> None:
    assert get(running, "/api/views", None)[0] == 401
    for place, state, status, code in (
        ({"kind": "view", "table": "users_ui", "name": ""}, 1, 400, "bad_name"),
        ({"kind": "shelf", "name": "a"}, 1, 400, "bad_frame"),
        ({"kind": "board", "name": "a"}, "x" * 40_000, 413, "bad_request"),
    ):
        found, error = send(running, "PUT", KEY, state, **place)
        assert (found, error["code"]) == (status, code)
        assert error["message"].startswith(("expected", "kind: expected"))


def test_a_kafka_that_refuses_is_a_sentence(broker: SecuredBroker) -> None:
    kafka, names = broker.settings("SASL_PLAINTEXT", "PLAIN"), Names("strangers")
    config = security.librdkafka(kafka, kafka.bootstrap_servers)
    admin = Grant("psk", Role.ADMIN)

    async def refusals() -> list[str]:
        saved = Saved()
        feed = Feed(config, names, Catalogue(), asyncio.get_running_loop(), saved=saved)
        keeping = Keeping(saved, TopicWriter(config, names.saved, is_changelog=True), names.saved, LimitSettings())
        feed.start()
        with pytest.raises(LiveboardError) as written:
            await keeping.put(admin, Place(None, SavedKind.BOARD, "", "a"), b'{"state":1}')
        while not saved.is_refused:
            await asyncio.sleep(0.05)
        with pytest.raises(LiveboardError) as read:
            await keeping.all(admin)
        await feed.stop()
        return [str(written.value), str(read.value)]

    found = asyncio.run(asyncio.wait_for(refusals(), PATIENCE_S))
    assert [sentence.split(",")[0] for sentence in found] == [
        f"expected permission to {operation} the Kafka topics ['strangers-views']" for operation in ("create", "read")
    ]
