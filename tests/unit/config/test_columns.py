"""B37: columns as a table, with paths and what comes from Kafka itself."""

from __future__ import annotations

from typing import Any

import pytest
from boards import SHOP
from configured import File, Raw, toml
from hypothesis import given
from hypothesis import strategies as st
from process import board_toml

from liveboard.config import load
from liveboard.contract.paths import PathError, parse_path, written_path
from liveboard.contract.schema import Column

STEPS = st.text(min_size=1, max_size=6).filter(lambda name: not set(name) & set('"?'))


def board(columns: Any, **source: Any) -> Raw:
    return {"board": {"sources": {"orders": {"topic": "o", "table": "orders_ui", "columns": columns, **source}}}}


def test_b37_columns_have_types_paths_units_and_origins(file: File) -> None:
    loaded = file.load(
        board(
            {
                "orderId": "BigInt",
                "order no": {"type": "decimal(10, 2)"},
                "city": {"type": "string", "path": "customer.address.city"},
                "first": {"type": "string", "path": "$.items[0].`a.b`"},
                "placed": {"type": "timestamp", "path": "placed", "unit": "ms"},
                "raw": {"type": "json", "path": "$"},
                "user": {"from": "key"},
                "bytes": {"from": "key", "type": "binary"},
                "part": {"from": "partition"},
                "place": {"from": "offset", "type": "bigint"},
                "at": {"from": "timestamp"},
                "trace": {"from": "headers.trace-id"},
            }
        )
    )
    assert loaded.board.sources["orders"].columns == (
        Column("orderId", "bigint"),
        Column("order no", "decimal(10,2)"),
        Column("city", "string", ("customer", "address", "city")),
        Column("first", "string", ("items", 0, "a.b")),
        Column("placed", "timestamp", None, "ms"),
        Column("raw", "json", ()),
        Column("user", "string", origin="key"),
        Column("bytes", "binary", origin="key"),
        Column("part", "int", origin="partition"),
        Column("place", "bigint", origin="offset"),
        Column("at", "timestamp", origin="timestamp"),
        Column("trace", "string", origin="headers.trace-id"),
    )


def test_b37_a_variable_holds_the_table(file: File) -> None:
    columns = {"a": "int", "b": {"type": "string", "path": "c.d"}}
    environ = {"LIVEBOARD_BOARD_SOURCES_ORDERS_COLUMNS": toml(columns)}
    assert file.load(board({"x": "int"}), environ) == file.load(board(columns))


def test_a_board_of_the_tests_comes_back_from_its_document() -> None:
    loaded = load(None, {"LIVEBOARD_BOARD": board_toml(SHOP)})
    assert {n: s.columns for n, s in loaded.board.sources.items()} == {n: s.columns for n, s in SHOP.sources.items()}


def test_a_source_has_a_schema_or_columns(file: File) -> None:
    assert file.problems(board({"a": "int"}, schema="a int")) == [
        "board.sources.orders.columns: expected either a schema or columns, found both (FILE)"
    ]


@pytest.mark.parametrize(
    ("columns", "at", "problem"),
    [
        (5, "", 'expected a table of columns such as userId = "string", found 5'),
        ({}, "", 'expected at least one column such as userId = "string", found none'),
        ({"a": 5}, ".a", 'expected a type such as "string", or a table with one, found 5'),
        ({"a": {"tpye": "int"}}, ".a.tpye", "unknown key, the nearest known one is type"),
        ({"a": {"path": "b"}}, ".a.type", 'expected a type such as "string", found nothing'),
        ({"a": {"type": 5}}, ".a.type", 'expected a text such as "string", found 5'),
        ({"a": {"type": "int", "path": "b[x]"}}, ".a.path", 'expected a place such as [0] at character 2 of "b[x]"'),
        ({"a": {"type": "int", "path": "b..c"}}, ".a.path", "expected the name of a field at character 3"),
        ({"a": {"type": "int", "path": "b."}}, ".a.path", 'at character 3 of "b.", found the end'),
        ({"a": {"type": "int", "path": "b c"}}, ".a.path", 'expected ".", "[" or the end at character 2'),
        ({"a": {"type": "int", "path": "$"}}, ".a.type", 'expected "json" for the path $, found "int"'),
        ({"a": {"type": "int", "path": "b", "from": "key"}}, ".a", "expected either a path or from, found both"),
        ({"a": {"from": "ofset"}}, ".a.from", 'found "ofset", did you mean offset?'),
        ({"a": {"from": "headers."}}, ".a.from", "expected key, partition, offset, timestamp or headers.NAME"),
        (
            {"a": {"from": "offset", "type": "int"}},
            ".a.type",
            'expected "bigint" for the offset, or nothing, found "int"',
        ),
        (
            {"a": {"type": "int", "unit": "ms"}},
            ".a.unit",
            "expected no unit, since only timestamps of numbers have one",
        ),
        ({"a": {"type": "timestamp", "unit": "m"}}, ".a.unit", 'expected "s", "ms" or "us", found "m"'),
        ({"a": {"from": "key"}}, ".a", "expected at least one column that is in the value"),
        ({"a": "int", "A": "int"}, ".A", 'expected different column names (case ignored), found "A" twice'),
        ({"ts": "int"}, ".ts", "Kafka timestamp's"),
        (
            {"a": {"type": "int", "path": "b.c"}, "d": {"type": "int", "path": "B.e"}},
            ".d",
            'expected paths that differ in more than upper and lower case, found "B" and "b"',
        ),
        ({"a": "decimal"}, ".a", 'found "decimal", did you mean decimal(10,2)?'),
        ({"a": "decimal(39,2)"}, ".a", 'found "decimal(39,2)", did you mean decimal(10,2)?'),
        ({"a": "decimal(2,3)"}, ".a", "did you mean decimal(10,2)?"),
        ({"a": "numeric(5,1)"}, ".a", "did you mean decimal(10,2)?"),
    ],
)
def test_what_is_wrong_with_columns_is_said_with_its_place(file: File, columns: Any, at: str, problem: str) -> None:
    content = board(columns) if columns != {} else toml(board({"a": "int"})).replace('"a" = "int"', "")
    (line,) = file.problems(content)
    assert line.startswith(f"board.sources.orders.columns{at}: ")
    assert problem in line


def test_everything_wrong_with_columns_is_said_at_once(file: File) -> None:
    lines = file.problems(board({"a": "strng", "b": {"type": "int", "path": ""}, "c": "int"}))
    assert [line.split(": ")[0] for line in lines] == [
        "board.sources.orders.columns.a",
        "board.sources.orders.columns.b.path",
    ]


@given(st.lists(STEPS | st.integers(0, 999_999), max_size=4))
def test_any_path_written_comes_back(steps: list[str | int]) -> None:
    path = ("a", *steps)
    assert parse_path(written_path(path)) == path
    assert parse_path(written_path((*path[:1], *steps))) == path


@given(st.text(alphabet="ab.[]`0 $\n", max_size=12))
def test_any_text_is_a_path_or_refused_with_a_reason(text: str) -> None:
    try:
        outcome = written_path(parse_path(text))
    except PathError as error:
        outcome = str(error)
    assert outcome.startswith("expected ") or written_path(parse_path(outcome)) == outcome
