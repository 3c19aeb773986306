"""What is said of a topic, by its records: the format, the columns, the types, the keys."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from liveboard.contract.errors import LiveboardError
from liveboard.inspect.columns import names
from liveboard.inspect.formats import FoundFormat, SampledRecord, read
from liveboard.inspect.guess import guess
from liveboard.inspect.toml import source_toml
from liveboard.inspect.topic import Topic, describe


def _records(documents: Iterable[Any], key: str | None = None) -> list[SampledRecord]:
    """The documents as records, with one of their fields as the Kafka key."""
    return [
        SampledRecord(json.dumps(document).encode(), None if key is None else str(document[key]).encode())
        for document in documents
    ]


def _described(documents: Iterable[Any], key: str | None = None) -> Topic:
    return describe("shop.orders", _records(documents, key))


def _columns(topic: Topic) -> dict[str, Any]:
    """The columns as the TOML has them."""
    source = tomllib.loads(source_toml(topic, "orders", "orders_ui"))["board"]["sources"]["orders"]
    columns: dict[str, Any] = source["columns"]
    return columns


CHANGE = {"op": "u", "before": None, "after": {"id": 1}, "source": {}}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b'{"a": 1}', FoundFormat.JSON),
        (b"{}", FoundFormat.JSON),
        (b'{"op": "c", "amount": 1}', FoundFormat.JSON),
        (b'{"op": "c", "before": null, "after": null}', FoundFormat.JSON),
        (json.dumps(CHANGE).encode(), FoundFormat.DEBEZIUM),
        (json.dumps({"schema": {"type": "struct"}, "payload": CHANGE}).encode(), FoundFormat.DEBEZIUM),
        (json.dumps({**CHANGE, "op": "d", "before": {"id": 1}, "after": None}).encode(), FoundFormat.DEBEZIUM),
        (b"\x00\x00\x00\x00\x07\x02\x06abc", FoundFormat.AVRO),
        (b"\x00\x00", FoundFormat.BYTES),
        (b"2026-01-01 INFO started", FoundFormat.TEXT),
        (b"[1, 2]", FoundFormat.TEXT),
        (b'{"a": 1', FoundFormat.TEXT),
        (b'{"a": 1, "a": 2}', FoundFormat.TEXT),
        (b'{"a": NaN}', FoundFormat.TEXT),
        (b"\xff\xfe\x00\x01", FoundFormat.BYTES),
        (b"[" * 100_000, FoundFormat.TEXT),
    ],
)
def test_the_format_is_found_by_looking(value: bytes, expected: FoundFormat) -> None:
    assert read(value)[0] is expected


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("a", [True, False], "boolean"),
        ("a", [1, -(2**63)], "bigint"),
        ("a", [2**64, 1], "decimal(38,0)"),
        ("a", [10**40], "json"),
        ("a", ["x", "42"], "string"),
        ("a", ["42", "7"], "string"),
        ("price", ["9.90", "120.00"], "decimal(18,2)"),
        ("price", ["9.90", "120.0"], "string"),
        ("version", ["1.2", "1.3"], "string"),
        ("a", ["-0.50", "99999999999999999999.50"], "decimal(38,2)"),
        ("day", ["2026-02-28"], "date"),
        ("day", ["2026-02-30"], "string"),
        ("a", ["2026-02-28T10:00:00Z", "2026-02-28 10:00:00.5+02:00"], "timestamp"),
        ("a", ["2026-02-28T10:00:00+19:00"], "string"),
        ("a", ["2026-02-28T10:00:00Z", "2026-02-28"], "string"),
        ("placedAt", [1_700_000_000_000], "timestamp ms"),
        ("event_time", [1_700_000_000], "timestamp s"),
        ("created_at", [1_700_000_000_000_000], "timestamp us"),
        ("placedAt", [1_700_000_000_000, 1_700_000_000], "bigint"),
        ("amount", [1_700_000_000_000], "bigint"),
        ("a", [{"x": 1}, [1]], "json"),
        ("a", [1, "x"], "json"),
        ("a", [1] * 99 + ["x"], "bigint"),
        ("a", [1] * 90 + ["x"] * 10, "json"),
        ("a", [1] * 99 + [2**70], "bigint"),
    ],
)
def test_a_type_is_the_narrowest_that_the_values_have(name: str, values: Sequence[Any], expected: str) -> None:
    found = guess(name, values)
    assert f"{found.type} {found.unit}".strip() == expected


def test_numbers_with_fractions_are_doubles_unless_they_are_too_large() -> None:
    topic = describe("t", [SampledRecord(b'{"a": 1, "b": 1e400}'), SampledRecord(b'{"a": 2.50, "b": 1}')])
    assert [(column.name, column.type) for column in topic.columns] == [("a", "double"), ("b", "json")]


def test_nested_objects_are_columns_with_a_path_and_arrays_are_json() -> None:
    documents = [
        {
            "orderId": number,
            "customer": {"id": 7, "address": {"city": "Oslo", "geo": None}},
            "items": [{"sku": "x"}],
            "placedAt": 1_700_000_000_000 + number,
            "ts": "2026-01-01T00:00:00Z",
            "coupon": None,
        }
        for number in range(3)
    ]
    topic = _described(documents)
    assert _columns(topic) == {
        "orderId": "bigint",
        "customer_id": {"type": "bigint", "path": "customer.id"},
        "city": {"type": "string", "path": "customer.address.city"},
        "items": "json",
        "placedAt": {"type": "timestamp", "path": "placedAt", "unit": "ms"},
        "event_ts": {"type": "timestamp", "path": "ts"},
    }
    assert "no columns: customer.address.geo, coupon.\n" in source_toml(topic, "orders", "orders_ui")


def test_an_object_with_ever_other_fields_is_one_json_column() -> None:
    topic = _described({"counts": {f"user-{number}": 1}, "id": number} for number in range(60))
    assert _columns(topic) == {"counts": "json", "id": "bigint"}


def test_a_document_of_any_depth_makes_few_columns() -> None:
    deep: Any = 1
    for _ in range(200):
        deep = {"a": deep, "b": 2}
    wide = {f"f{number}": number for number in range(1_000)}
    assert len(_described([deep]).columns) < 20
    topic = _described([wide])
    assert len(topic.columns) == 200
    assert len(topic.left_out) == 800


def test_names_of_any_kind_are_quoted_and_those_that_differ_only_in_case_are_left_out() -> None:
    topic = _described([{"order id": 1, "a.b": {"c`d": 2, "é": 3}, "Order": 1, "order": 2, "": 5, "$": 6}])
    assert _columns(topic) == {
        "order id": "bigint",
        "c`d": {"type": "bigint", "path": "`a.b`.`c``d`"},
        "é": {"type": "bigint", "path": "`a.b`.é"},
        "Order": "bigint",
        "$": "bigint",
    }
    assert topic.left_out == (("order",), ("",))


def test_no_two_columns_have_one_name() -> None:
    paths = [("a", "x"), ("x",), ("b", "a", "x"), ("a_x",), ("ts",), ("q", "ts"), ("event_ts",), ("c", "X")]
    found = names(paths)
    assert len({name.lower() for name in found} - {"ts"}) == len(paths)
    assert found[paths.index(("x",))] == "x"
    assert found[paths.index(("a_x",))] == "a_x"


def test_examples_nulls_and_strays_are_comments() -> None:
    documents = [{"a": number if number else "x", "b": "line\nend" if number % 2 else None} for number in range(100)]
    lines = source_toml(_described(documents), "orders", "orders_ui").splitlines()
    assert 'a = "bigint"  # 1, 2; 1 value of another type; never null' in lines
    assert 'b = "string"  # "line\\nend"; null in 50 %' in lines
    quiet = source_toml(_described(documents), "orders", "orders_ui", examples=False)
    assert "line" not in quiet


def test_any_example_gives_valid_toml() -> None:
    documents = [{"a": text} for text in ("\x7f\x00", "\ud800", '"""', "\u2028", "x" * 1_000, "#")]
    assert _columns(_described(documents)) == {"a": "string"}


def test_a_topic_with_tombstones_is_a_table_by_its_key() -> None:
    records = _records([{"sku": "a", "price": 1}, {"sku": "b", "price": 2}, {"sku": "a", "price": 3}], "sku")
    topic = describe("products", [*records, SampledRecord(None, b"b")])
    text = source_toml(topic, "products", "products_ui")
    source = tomllib.loads(text)["board"]["sources"]["products"]
    assert (source["mode"], source["key"]) == ("upsert", "sku")
    assert "# 1 tombstone among them: each removes a row." in text


def test_a_compacted_topic_is_a_table_whose_key_may_be_kafkas_alone() -> None:
    topic = describe("t", [SampledRecord(b'{"a": 1}', b"x"), SampledRecord(b'{"a": 1}', b"y")], compacted=True)
    source = tomllib.loads(source_toml(topic, "s", "t"))["board"]["sources"]["s"]
    assert source["key"] == "key"
    assert source["columns"] == {"key": {"from": "key"}, "a": "bigint"}


def test_a_key_of_several_fields_is_the_key_of_the_table() -> None:
    rows = [{"shop": 1, "sku": "a", "n": 1}, {"shop": 2, "sku": "a", "n": 1}]
    records = [
        SampledRecord(json.dumps(row).encode(), json.dumps({"shop": row["shop"], "sku": "a"}).encode()) for row in rows
    ]
    assert describe("t", [*records, SampledRecord(None, b"{}")]).row_key == ("shop", "sku")


def test_keys_that_only_repeat_are_a_remark() -> None:
    topic = _described([{"user": f"u{number % 3}", "balance": number % 5} for number in range(30)], "user")
    assert not topic.is_table
    assert '# mode = "upsert", key = "user"' in source_toml(topic, "orders", "orders_ui")


def test_events_with_an_id_of_their_own_are_no_table() -> None:
    topic = _described([{"orderId": number, "user": number % 3} for number in range(30)], "user")
    text = source_toml(topic, "orders", "orders_ui")
    assert "upsert" not in text
    assert "# The likely key is orderId: all its values differ." in text


def test_a_number_beyond_64_bits_can_be_a_key_and_an_amount_is_none() -> None:
    topic = _described([{"price": f"{number}.50", "serial": 10**20 + number} for number in range(30)])
    assert [column.type for column in topic.columns] == ["decimal(18,2)", "decimal(38,0)"]
    assert topic.unique == "serial"


@pytest.mark.parametrize("wrapped", [True, False])
def test_debezium_columns_are_those_of_the_row(wrapped: bool) -> None:
    def record(operation: str, before: Any, after: Any) -> SampledRecord:
        change = {"op": operation, "before": before, "after": after, "ts_ms": 1}
        key = {"id": (after or before)["id"]}
        value: Any = {"schema": {}, "payload": change} if wrapped else change
        return SampledRecord(
            json.dumps(value).encode(), json.dumps({"schema": {}, "payload": key} if wrapped else key).encode()
        )

    row = {"id": 1, "name": "Ada", "born": "1815-12-10"}
    topic = describe("db.people", [record("c", None, row), record("d", {"id": 1, "born": ""}, None)])
    source = tomllib.loads(source_toml(topic, "people", "people_ui"))["board"]["sources"]["people"]
    assert source == {
        "topic": "db.people",
        "table": "people_ui",
        "format": "debezium",
        "key": "id",
        "columns": {"id": "bigint", "name": "string", "born": "date"},
    }


def test_of_avro_the_schema_ids_are_named() -> None:
    topic = describe("t", [SampledRecord(b"\x00\x00\x00\x00\x07abc"), SampledRecord(b"\x00\x00\x00\x01\x00abc")])
    text = source_toml(topic, "t", "t_ui")
    assert "The schema ids are 7, 256." in text
    assert "registry.url" in text
    assert tomllib.loads(text) == {}


def test_of_text_it_is_said_that_no_board_can_show_it() -> None:
    text = source_toml(describe("logs", [SampledRecord(b"hello\nworld")]), "logs", "logs_ui")
    assert '# No board can show it: expected JSON objects, found "hello\\nworld".' in text
    assert tomllib.loads(text) == {}


def test_a_few_values_of_another_format_are_counted() -> None:
    topic = describe("t", [*_records([{"a": 1}] * 5), SampledRecord(b"oops")])
    assert topic.format is FoundFormat.JSON
    assert "1 record of another format would be in rejects_ui." in source_toml(topic, "t", "t_ui")


@pytest.mark.parametrize(("records", "found"), [([], "none"), ([SampledRecord(None, b"k")], "only tombstones")])
def test_a_topic_without_values_is_a_sentence(records: list[SampledRecord], found: str) -> None:
    with pytest.raises(LiveboardError, match=f"^t: expected records to look at, found {found}; produce some"):
        describe("t", records)
