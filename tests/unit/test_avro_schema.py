"""Avro schemas reduced to what columns need."""

from __future__ import annotations

import json
from typing import Any

import pytest

from liveboard.contract.paths import parse_path
from liveboard.contract.schema import Column
from liveboard.pipeline.avro_schema import AvroSchemaError, Needs, find, parse, written


def record(name: str, *fields: tuple[str, Any], **more: str) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": n, "type": type_} for n, type_ in fields], **more}


def needs(schema: Any, *paths: str) -> Needs:
    return Needs(parse(json.dumps(schema)), [Column(path, "string", parse_path(path)) for path in paths])


def fields(reader: Any) -> Any:
    """The reader's fields as nested dictionaries, types as they are."""
    if isinstance(reader, dict) and "fields" in reader:
        return {each["name"]: fields(each["type"]) for each in reader["fields"]}
    return [fields(each) for each in reader] if isinstance(reader, list) else reader


ADDRESS = record("Address", ("street", "string"), ("city", "string"))
ORDER = record(
    "Order",
    ("id", "long"),
    ("from", ["null", ADDRESS]),
    ("to", "Address"),
    ("strange", {"type": "long", "logicalType": "timestamp-nanos"}),
    ("node", record("Node", ("name", "string"), ("next", ["null", "Node"]))),
    namespace="shop",
)


def test_only_fields_that_columns_are_made_of_are_read() -> None:
    reader = needs(ORDER, "id", "node.name").reader
    assert fields(reader) == {"id": "long", "node": {"name": "string"}}


def test_a_record_that_is_used_twice_has_the_fields_of_both_places() -> None:
    reader = needs(ORDER, "from.city", "to.street").reader
    name = reader["fields"][0]["type"][1]["name"]
    assert fields(reader) == {"from": ["null", {"street": "string", "city": "string"}], "to": name}


def test_a_whole_record_is_read_with_all_that_is_inside() -> None:
    assert fields(needs(ORDER, "from").reader) == {"from": ["null", {"street": "string", "city": "string"}]}


@pytest.mark.parametrize("path", ["node", "node.next", "node.next.name", "$"])
def test_a_column_that_needs_a_record_inside_of_itself_is_known(path: str) -> None:
    found = needs(ORDER, path, "id")
    assert (found.recursive, fields(found.reader)) == ((path,), {"id": "long"})


def test_columns_that_need_it_together_make_the_schema_unreadable() -> None:
    first = record("A", ("b", record("B", ("a", ["null", "A"]), ("x", "int"))), ("y", "int"))
    schema = record("Both", ("a", first), ("b", "B"))
    with pytest.raises(AvroSchemaError, match="expected columns that need no record inside of itself, found "):
        _ = needs(schema, "a.b.x", "b.a.y").reader


def test_what_is_missing_is_found_nowhere_and_what_is_in_the_way_is_told() -> None:
    schema = parse(json.dumps(ORDER))
    assert find(schema, parse_path("from.country")) == []
    (found,) = find(schema, parse_path("id.more"))
    assert (found.type.text, found.rest) == ("long", ("more",))
    (found,) = find(parse('["null", "int", "long"]'), ())
    assert (found.type.text, found.way) == ("long", ())
    both = find(parse('["null", "string", {"type": "array", "items": "int"}]'), ())
    assert [(each.type.text, each.way[0].to) for each in both] == [("string", "member0"), ("array", "member1")]


def test_logical_types_that_spark_reads_are_kept_and_others_are_plain() -> None:
    def text(**schema: Any) -> str:
        return parse(json.dumps(schema)).text

    assert text(type="long", logicalType="timestamp-micros") == "timestamp-micros"
    assert text(type="long", logicalType="timestamp-nanos") == "long"
    assert text(type="int", logicalType="timestamp-micros") == "int"
    assert text(type="bytes", logicalType="decimal", precision=9, scale=2) == "decimal(9,2)"
    assert text(type="bytes", logicalType="decimal", precision=39) == "bytes"
    assert text(type="fixed", name="F", size=4, logicalType="decimal", precision=9) == "decimal(9,0)"
    assert text(type="fixed", name="F", size=4, logicalType="decimal", precision=10) == "fixed F"
    assert text(type="enum", name="x.E", symbols=["A"]) == "enum E"


def test_names_of_schemas_that_it_refers_to_are_known() -> None:
    inner = json.dumps(record("Inner", ("x", "int"), namespace="a.b"))
    outer = json.dumps(record("Outer", ("inner", "Inner"), ("again", "a.b.Inner"), namespace="a.b"))
    whole = written(parse(outer, [inner]))
    assert fields(whole) == {"inner": {"x": "int"}, "again": whole["fields"][0]["type"]["name"]}
    with pytest.raises(AvroSchemaError, match='found "Inner", which is not defined'):
        parse(outer)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("{", "found another text"),
        ("5", "found 5"),
        ('{"type":"recrd"}', 'found "recrd", which is not defined'),
        ('{"type":"record","name":"A"}', "expected a whole record A, found one without 'fields'"),
        ('{"type":"record","name":"A-b","fields":[]}', 'found "A-b"'),
        ('{"type":"record","name":"A","fields":[{"name":"a b","type":"int"}]}', 'found "a b"'),
        ('{"type":"fixed","name":"F","size":"x"}', "expected a whole fixed F"),
    ],
)
def test_what_is_no_schema_is_told(text: str, found: str) -> None:
    with pytest.raises(AvroSchemaError) as caught:
        parse(text)
    assert found in str(caught.value)


def test_a_bare_word_is_a_schema_too() -> None:
    assert parse("string").text == parse('"string"').text == "string"
