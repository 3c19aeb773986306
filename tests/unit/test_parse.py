"""What the parser decides without Spark; what its expressions make of records is in tests/integration/test_parse.py."""

from __future__ import annotations

import re
from operator import add
from typing import Any, cast

import pytest

from liveboard.contract.board import Source
from liveboard.contract.schema import Column
from liveboard.contract.types import TYPES
from liveboard.pipeline import fields, keys
from liveboard.pipeline.avro_schema import AvroSchemas
from liveboard.pipeline.fields import read_type
from liveboard.pipeline.folding import folded
from liveboard.pipeline.json_format import JsonFormat
from liveboard.pipeline.kafka_columns import need_headers


def source(*columns: Column, **more: Any) -> Source:
    return Source(name="s", topic="s", table="s_ui", columns=columns, **more)


def test_from_json_reads_as_text_or_variant_what_it_would_stretch_or_round() -> None:
    read = {name: read_type(Column("c", "decimal(10,2)" if name == "decimal" else name)) for name in TYPES}
    assert read == {
        "string": "string",
        "boolean": "boolean",
        "int": "int",
        "bigint": "bigint",
        "double": "double",
        "decimal": "variant",
        "date": "string",
        "timestamp": "string",
        "json": "variant",
        "binary": "variant",
    }


@pytest.mark.parametrize(
    ("pattern", "good", "bad"),
    [
        (fields._DATE, ["2026-01-31"], ["26-01-31", "2026-1-31", "2026-01-31T00:00:00Z", " 2026-01-31"]),
        (
            fields._TIMESTAMP,
            ["2026-01-31T09:30:00", "2026-01-31 09:30:00.123456Z", "2026-01-31T09:30:00+05:30"],
            ["2026-01-31", "2026-01-31T09:30", "2026-01-31T09:30:00.1234567Z", "2026-01-31T09:30:00+0530"],
        ),
        (fields._NUMBER, ["0", "-1.5", "1e400", "0012.50"], ["", ".5", "1.", "+1", "1e", "NaN", "1" * 41]),
        (fields._BASE64, ["", "AAE=", "a+/9"], ["-_==", "AA E", "=A", "A==="]),
    ],
    ids=["date", "timestamp", "number", "base64"],
)
def test_texts_are_taken_by_their_form(pattern: str, good: list[str], bad: list[str]) -> None:
    assert [text for text in good if not re.search(pattern, text)] == []
    assert [text for text in bad if re.search(pattern, text)] == []


@pytest.mark.parametrize(
    ("columns", "type_", "is_flat", "is_whole"),
    [
        ([Column("a", "int"), Column("b", "date")], "struct<`a` int, `b` string>", True, False),
        ([Column("a", "int", path=("x", "y"))], "struct<`x` struct<`y` int>>", False, False),
        ([Column("a", "int", path=("x",)), Column("b", "json", path=("x",))], "struct<`x` variant>", False, False),
        ([Column("a", "int"), Column("b", "json", path=())], "variant", False, True),
        ([Column("a", "int"), Column("b", "string", origin="key")], "struct<`a` int>", True, False),
    ],
    ids=["flat", "nested", "two ways into one place", "the whole document", "of the Kafka record"],
)
def test_a_document_is_read_once_for_all_columns(
    columns: list[Column], type_: str, is_flat: bool, is_whole: bool
) -> None:
    no_look = cast(Any, None)
    format_ = JsonFormat(source(*columns), no_look, no_look, AvroSchemas())
    assert (format_._shape.type, format_._is_flat, format_._is_whole) == (type_, is_flat, is_whole)


def test_a_key_is_looked_for_at_its_path_and_under_its_name_whatever_their_case() -> None:
    columns = (Column("ID", "int", path=("id",)), Column("shop", "string", path=("at", "shop")), Column("n", "int"))
    table = source(*columns, mode="upsert", key=("shop", "ID"))
    assert [column.name for column in keys.key_columns(table)] == ["shop", "ID"]
    assert keys._fields(table) == ["at", "shop", "id"]


def test_headers_are_read_only_where_a_column_is_made_of_them() -> None:
    plain = source(Column("k", "string", origin="key"))
    assert not need_headers([plain])
    assert need_headers([plain, source(Column("t", "string", origin="headers.trace"))])


@pytest.mark.parametrize("count", [1, 2, 7, 64])
def test_many_expressions_are_folded_in_their_order_and_not_deeply(count: int) -> None:
    parts = [[number] for number in range(count)]
    assert folded(add, parts) == list(range(count))
    depth = folded(lambda one, other: max(one, other) + 1, [0] * count)
    assert depth == (count - 1).bit_length()
