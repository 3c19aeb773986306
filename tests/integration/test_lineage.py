"""Where rows come from, over HTTP: the records behind them, read from a real broker by position, and who sees them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import pytest
from live import KEY, Board, Running, get, serving
from origins import Origins, at

from liveboard.config import KeySettings, Secret

pytestmark = pytest.mark.integration

KEYS = {
    name: KeySettings(name=name, role="viewer", key=Secret(f"the key of {name}"), tables=tables)
    for name, tables in {
        "joined": ("final_ui",),
        "users": ("final_ui", "users_ui"),
        "raw": ("final_ui", "users_ui", "accounts_ui", "rejects_ui"),
    }.items()
}


@pytest.fixture(scope="module")
def origins(kafka: str) -> Origins:
    """Records and what was made of them."""
    return Origins(Board(kafka))


@pytest.fixture(scope="module")
def running(kafka: str, origins: Origins) -> Iterator[Running]:
    """A server with several keys."""
    with serving(kafka, keys=KEYS) as running:
        running.bound(origins.generation)
        yield running


def explained(running: Running, table: str, key: str, who: str = KEY) -> dict[str, Any]:
    """What the server says of a row."""
    status, answer = get(running, f"/api/tables/{table}/row?{urlencode({'key': key})}", who)
    assert status == 200, answer
    found: dict[str, Any] = answer
    return found


def places(answer: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Source and position of each record."""
    return [tuple(record.get(name) for name in ("source", "partition", "offset")) for record in answer["sources"]]


def test_b44_a_row_of_a_source_has_its_record(running: Running, origins: Origins) -> None:
    answer = explained(running, "users_ui", "0-0")
    assert answer["row"] == ["a", "Ada", at(0)]
    assert [column["name"] for column in answer["columns"]] == ["userId", "name", "ts"]
    [record] = answer["sources"]
    assert record == {
        "source": "users",
        "topic": origins.topics["users"],
        "partition": 0,
        "offset": 0,
        "ts": at(0),
        "key": "key 0",
        "value": '{"userId": "a", "name": "Ada", "secret": "of Ada"}',
    }


def test_b44_each_join_finds_its_records(running: Running) -> None:
    left = explained(running, "final_ui", "0-0")
    assert (left["how"], left["on"], places(left)) == ("left", "userId", [("users", 0, 0), ("accounts", 0, 2)])
    assert left["sources"][1]["value"] == '{"userId": "a", "balance": 3.5}'
    inner = explained(running, "pairs", "0-0:0-1")
    assert (inner["how"], places(inner)) == ("inner", [("users", 0, 0), ("accounts", 0, 1)])
    asof = explained(running, "nearest", "0-0")
    assert (asof["how"], places(asof)) == ("asof", [("users", 0, 0), ("accounts", 0, 0)])
    alone = explained(running, "final_ui", "0-1")
    assert places(alone) == [("users", 0, 1), ("accounts", None, None)]
    assert alone["sources"][1]["note"] == "no record of accounts with this userId"


def test_b44_a_reject_has_its_record(running: Running, origins: Origins) -> None:
    answer = explained(running, "rejects_ui", f"{origins.topics['users']}-0-2")
    assert places(answer) == [("users", 0, 2)]
    assert answer["sources"][0]["value"] == '{"userId": 7}'


def test_a_key_that_tells_no_position_is_said_to(running: Running) -> None:
    answer = explained(running, "nearest", "entity")
    assert answer["sources"][0]["note"] == "its source records are not told by its key"


def test_b44_a_row_of_a_table_by_key_has_the_newest_record_of_its_key(running: Running) -> None:
    answer = explained(running, "kept_ui", '="a:b"')
    assert places(answer) == [("kept", 0, 2)]
    assert '"name": "Ada"' in answer["sources"][0]["value"]
    # No text tells the key, but there is one record of this time.
    assert places(explained(running, "kept_ui", "=7")) == [("kept", 0, 4)]
    gone = explained(running, "kept_ui", '="gone"')["sources"][0]
    assert gone["note"] == "the newest record of this key was not found: Kafka may have deleted it"


def test_b44_joins_with_tables_by_key_find_their_records(running: Running) -> None:
    assert places(explained(running, "owned", "0-0")) == [("accounts", 0, 0), ("kept", 0, 2)]
    assert places(explained(running, "kept_pairs", '="a:b":0-1')) == [("kept", 0, 2), ("accounts", 0, 1)]
    assert places(explained(running, "owners", "0-2")) == [("accounts", 0, 2), ("kept", 0, 2)]
    replaced = explained(running, "owners", "0-0")["sources"][1]
    assert replaced["note"] == "kept_ui shows only the newest record of this userId, which came after the row"


def test_tables_say_what_they_are(running: Running) -> None:
    kinds = {table["name"]: table["kind"] for table in get(running, "/api/tables")[1]["tables"]}
    assert (kinds["users_ui"], kinds["final_ui"], kinds["rejects_ui"]) == ("source", "join", "rejects")
    assert (kinds["control_raw"], kinds["orchestrator_status"]) == ("control", "status")


def test_roles_hold_for_what_is_behind_a_row(running: Running) -> None:
    joined = explained(running, "final_ui", "0-0", "the key of joined")
    assert (joined["row"][:2], joined["sources"], joined["hidden"], joined["how"]) == (["a", "Ada"], [], 2, "")
    users = explained(running, "final_ui", "0-0", "the key of users")
    assert (places(users), users["hidden"]) == ([("users", 0, 0)], 1)
    # The raw record has fields that the table does not show.
    assert "value" not in users["sources"][0]
    assert users["sources"][0]["note"] == "the raw record is shown to keys that show rejects_ui"
    raw = explained(running, "final_ui", "0-0", "the key of raw")
    assert [record["value"][:12] for record in raw["sources"]] == ['{"userId": "', '{"userId": "']
    for who, table, status, code in (
        ("the key of joined", "users_ui", 404, "unknown_table"),
        ("the key of users", "rejects_ui", 404, "unknown_table"),
        (KEY, "final_ui", 404, "not_found"),
        (None, "final_ui", 401, "unauthorized"),
    ):
        found, answer = get(running, f"/api/tables/{table}/row?key=9-9", who)
        assert (found, answer["error"]["code"]) == (status, code)
    assert get(running, "/api/tables/final_ui/row")[1]["error"]["code"] == "bad_frame"


def test_a_preview_says_what_a_topic_would_bring(running: Running, origins: Origins) -> None:
    def preview(source: str, topic: str, who: str = KEY) -> tuple[int, Any]:
        return get(running, f"/api/preview?{urlencode({'source': source, 'topic': topic})}", who)

    status, users = preview("users", origins.topics["users"])
    assert (status, users["records"], users["sampled"], users["fitting"], users["empty"]) == (200, 3, 3, 2, [])
    assert users["reasons"] == ["userId: expected string, found number"]
    # As when somebody takes one for the other.
    status, accounts = preview("users", origins.topics["accounts"])
    assert (status, accounts["fitting"], accounts["empty"]) == (200, 3, ["name"])
    assert preview("nobody", origins.topics["users"])[0] == 400
    assert preview("users", "no such topic")[0] == 400
    assert preview("users", "no-such-topic")[0] == 503
    assert preview("users", origins.topics["users"], "the key of raw")[0] == 403


def test_the_pulse_counts_what_came_of_each_source(running: Running, origins: Origins) -> None:
    _, pulse = get(running, "/api/pulse")
    assert (pulse["generation"], pulse["events"]) == (origins.generation, 9)
    assert [(each["source"], each["rows"], each["rejected"], each["reason"]) for each in pulse["sources"]] == [
        ("users", 2, 1, "userId: expected string, found number"),
        ("accounts", 3, 0, None),
        ("kept", 3, 0, None),
    ]
    _, pulse = get(running, "/api/pulse", "the key of users")
    assert [(each["source"], each["rejected"]) for each in pulse["sources"]] == [("users", None)]


def test_a_record_that_kafka_has_deleted_is_said_to_be(running: Running, origins: Origins) -> None:
    origins.admin.delete_records(origins.topics["accounts"], 1)
    [record] = explained(running, "accounts_ui", "0-0")["sources"]
    assert record["note"] == "Kafka has deleted this record: the partition begins at offset 1 now"
    assert "value" not in record
