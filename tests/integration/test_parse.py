"""B5, B6 and B37 without Kafka: what is made of every kind of value, and why others are refused."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Literal

import pytest
from kafkaless import kafka_frame
from oracle import Record
from pyspark.sql import Row, SparkSession

from liveboard.contract.board import Source
from liveboard.contract.schema import Column
from liveboard.contract.types import TYPES
from liveboard.pipeline.parse import parse, row_column

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("generated_code")]

WRITTEN = {"decimal": "decimal(10,2)"}
SOURCE = Source(
    name="s",
    topic="s",
    schema=", ".join(f"{name}_ {WRITTEN.get(name, name)}" for name in TYPES),
    table="s_ui",
    max_value_bytes=200,
)
ROW = row_column(SOURCE)
ON_ERROR: tuple[Literal["reject"], Literal["null"]] = ("reject", "null")
NOON = datetime(2026, 1, 31, 12)
GOOD: dict[str, dict[str, Any]] = {
    "string": {'"Ada"': "Ada", '"42"': "42", '"true"': "true", '"{}"': "{}", '""': ""},
    "boolean": {"true": True, "false": False},
    "int": {"-2147483648": -(2**31), "2147483647": 2**31 - 1, "-0": 0},
    "bigint": {"9223372036854775807": 2**63 - 1, "9007199254740993": 2**53 + 1},
    "double": {"1": 1.0, "-2.5": -2.5, "1e300": 1e300},
    "decimal": {
        "1": Decimal("1.00"),
        "-12345678.9": Decimal("-12345678.90"),
        '"0012.50"': Decimal("12.50"),
        "1.100": Decimal("1.10"),
        "-0.0": Decimal("0.00"),
        "1e2": Decimal("100.00"),
        '"2.5e-1"': Decimal("0.25"),
    },
    "date": {'"2024-02-29"': date(2024, 2, 29)},
    "timestamp": {'"2026-01-31T12:00:00Z"': NOON, '"2026-01-31 17:30:00.0+05:30"': NOON},
    "json": {
        '{"b":[1, 2.50 ,null], "a":{"x":"y z"}}': '{"a":{"x":"y z"},"b":[1,2.5,null]}',
        "[]": "[]",
        "5": "5",
        "true": "true",
        '"x"': '"x"',
        "null": None,
    },
    "binary": {'"AAECAw=="': bytes(range(4)), '""': b"", '"' + "eHh4" * 30 + '"': b"xxx" * 30},
}
WRONG = {
    "string": ["42", "true", "{}", "[]", "-1.5"],
    "boolean": ['"true"', "1", '""'],
    "int": ["2147483648", "1.5", '"1"', "true"],
    "bigint": ["9223372036854775808", "1.0", '"1"', "NaN"],
    "double": ["NaN", "1e400", "-Infinity", '"1.5"', "true"],
    "decimal": ["100000000", "1.005", '"1.005"', '"x"', '""', '" 1"', "true", "[1]", "1e9", "1.5e-5", "NaN", "1e400"],
    "date": ['"2024-02-30"', '"24-01-01"', "20240101", '"2024-01-01T00:00:00Z"'],
    "timestamp": ['"2024-01-01"', "1700000000", '"noon"', '"2024-13-01T00:00:00Z"'],
    "json": [],
    "binary": ['"A"', '"AAEC Aw=="', '"-_=="', "5", "[]", "true"],
}
CASES = [(name, text) for name in TYPES for text in [*GOOD[name], *WRONG[name]]]


REFUSED = {
    b"[1]": "value: expected a JSON object, found [1]",
    b"{} trailing": "value: expected a JSON object, found {} trailing",
    b"": "value: expected a JSON object, found ",
    b'{"string_":"\xff"}': "value: expected UTF-8 text, found bytes that are not",
    b'{"string_":"' + b"x" * 200 + b'"}': "value: expected at most 200 bytes, found 214",
}
EMPTY = (b"{}", b'{"unknown":[1]}')


def document(name: str, text: str) -> bytes:
    """A record with one field."""
    return f'{{"{name}_":{text}}}'.encode()


Parsed = dict[bytes | None, Row]


@pytest.fixture(scope="module")
def parsed(spark: SparkSession) -> dict[str, Parsed]:
    """What is made of every value, by what the source says about wrong ones."""
    values = [*(document(*case) for case in CASES), *REFUSED, *EMPTY, None]
    frame = kafka_frame(spark, [Record("s", 0, offset, 0, value) for offset, value in enumerate(values)])
    return {
        on_error: {values[row["offset"]]: row for row in parse(frame, [replace(SOURCE, on_error=on_error)]).collect()}
        for on_error in ON_ERROR
    }


def test_the_cases_have_every_type() -> None:
    assert GOOD.keys() == WRONG.keys() == TYPES.keys()


@pytest.mark.parametrize(("name", "text"), CASES)
def test_b5_every_type_takes_its_own_values_and_no_others(parsed: dict[str, Parsed], name: str, text: str) -> None:
    row = parsed["reject"][document(name, text)]
    if text in GOOD[name]:
        assert (row["reason"], row[ROW][f"{name}_"]) == (None, GOOD[name][text])
    else:
        assert row[ROW] is None
        assert row["reason"].startswith(f"{name}_: expected {WRITTEN.get(name, name)}, found ")


@pytest.mark.parametrize(("name", "text"), CASES)
def test_b6_what_is_wrong_becomes_null_where_the_source_says_so(
    parsed: dict[str, Parsed], name: str, text: str
) -> None:
    row = parsed["null"][document(name, text)]
    assert (row["reason"], row[ROW][f"{name}_"]) == (None, GOOD[name].get(text))


@pytest.mark.parametrize("on_error", ON_ERROR)
def test_b5_what_is_no_object_is_refused_whatever_the_source_says(parsed: dict[str, Parsed], on_error: str) -> None:
    for value, reason in REFUSED.items():
        row = parsed[on_error][value]
        assert (row[ROW], row["reason"]) == (None, reason)


@pytest.mark.parametrize("on_error", ON_ERROR)
def test_b5_missing_fields_are_null_and_unknown_ones_ignored(parsed: dict[str, Parsed], on_error: str) -> None:
    for value in EMPTY:
        row = parsed[on_error][value]
        assert (row["reason"], [*row[ROW]]) == (None, [None] * len(TYPES))


@pytest.mark.parametrize("on_error", ON_ERROR)
def test_b5_a_tombstone_is_no_row_and_no_reject(parsed: dict[str, Parsed], on_error: str) -> None:
    assert (parsed[on_error][None]["reason"], parsed[on_error][None][ROW]) == (None, None)


NESTED = Source(
    name="n",
    topic="n",
    table="n_ui",
    columns=(
        Column("city", "string", ("customer", "address", "city")),
        Column("sku", "string", ("items", 0, "sku")),
        Column("count", "bigint", ("items", 1, "count")),
        Column("price", "decimal(6,2)", ("items", 1, "price")),
        Column("placed", "timestamp", None, "ms"),
        Column("extra", "json"),
        Column("inside", "int", ("extra", "a")),
        Column("user", "bigint", origin="key"),
        Column("trace", "string", origin="headers.trace-id"),
        Column("offset", "bigint", origin="offset"),
    ),
)
AT_PATHS: dict[str, dict[str, Any]] = {
    '{"customer":{"address":{"city":"Ulm"}}}': {"city": "Ulm"},
    '{"customer":{"address":null}}': {},
    '{"customer":null,"items":null}': {},
    '{"items":[]}': {},
    '{"items":[{"sku":"5"}]}': {"sku": "5"},
    '{"items":[null,{"count":2,"price":"1.5","more":{}}]}': {"count": 2, "price": Decimal("1.50")},
    # Elements that no column is made of may be anything.
    '{"items":[{"sku":"a"},{"count":1},5,{"count":"x"}]}': {"sku": "a", "count": 1},
    '{"items":[{"count":"x"},{"count":1}],"customer":{"address":{"city":"Ulm"}}}': {"count": 1, "city": "Ulm"},
    '{"placed":1769860800000}': {"placed": NOON},
    '{"placed":"1769860800000"}': {"placed": NOON},
    '{"placed":1769860800000.9}': {"placed": NOON.replace(microsecond=900)},
    '{"placed":"2026-01-31T12:00:00Z"}': {"placed": NOON},
    '{"extra":{"b":1, "a":2}}': {"extra": '{"a":2,"b":1}', "inside": 2},
    '{"extra":{"a":null}}': {"extra": '{"a":null}'},
}
NOT_AT_PATHS = {
    '{"customer":{"address":{"city":5}}}': "customer.address.city: expected string, found 5 (bigint)",
    '{"customer":"x"}': 'customer: expected an object, found "x" (string)',
    '{"customer":{"address":[1]}}': "customer.address: expected an object, found [1] (array)",
    '{"items":{"sku":"a"}}': 'items: expected an array, found {"sku":"a"} (object)',
    '{"items":["a"]}': 'items[0]: expected an object, found "a" (string)',
    '{"items":[{"sku":{}}]}': "items[0].sku: expected string, found {} (object)",
    '{"items":[{},{"count":1.5}]}': "items[1].count: expected bigint, found 1.5 (decimal)",
    '{"items":[{},{"price":10000}]}': "items[1].price: expected decimal(6,2), found 10000 (bigint)",
    '{"items":[{},{"price":"1.005"}]}': 'items[1].price: expected decimal(6,2), found "1.005" (string)',
    '{"placed":true}': "placed: expected timestamp, found true (boolean)",
    '{"placed":1e20}': "placed: expected timestamp, found 1.0E20 (double)",
    '{"extra":[1]}': "extra: expected an object, found [1] (array)",
    '{"extra":{"a":"x"}}': 'extra.a: expected int, found "x" (string)',
    '{"extra":{"a":1,"a":2}}': "value: expected every field once, found one repeated",
}
OF_KAFKA: dict[tuple[bytes | None, tuple[tuple[str, bytes | None], ...]], tuple[str | None, dict[str, Any]]] = {
    (b"7", ()): (None, {"user": 7}),
    (b"x", ()): ('key: expected bigint, found "x"', {}),
    (b"\xff", ()): ("key: expected UTF-8 text, found bytes that are not", {}),
    (None, (("trace-id", b"a"), ("trace-id", b"b"), ("other", b"c"))): (None, {"trace": "b"}),
    (None, (("trace-id", None),)): (None, {}),
    (None, (("trace-id", b"\xff"),)): ("headers.trace-id: expected UTF-8 text, found bytes that are not", {}),
}


@pytest.mark.parametrize("on_error", ON_ERROR)
def test_b37_values_are_found_by_path_or_refused_by_it(
    spark: SparkSession, on_error: Literal["reject", "null"]
) -> None:
    documents = [*AT_PATHS, *NOT_AT_PATHS]
    records = [Record("n", 0, number, 0, text.encode()) for number, text in enumerate(documents)]
    first = len(records)
    records += [Record("n", 0, first + n, 0, b"{}", *kafka) for n, kafka in enumerate(OF_KAFKA)]
    found = {
        row["offset"]: row for row in parse(kafka_frame(spark, records), [replace(NESTED, on_error=on_error)]).collect()
    }
    nothing: dict[str, Any] = {column.name: None for column in NESTED.columns}
    for number, text in enumerate(documents):
        row, reason = found[number]["n_row"], NOT_AT_PATHS.get(text)
        if reason is None:
            assert (found[number]["reason"], row.asDict()) == (None, nothing | AT_PATHS[text] | {"offset": number}), (
                text
            )
        elif on_error == "reject":
            assert (found[number]["reason"], row) == (reason, None)
        else:
            assert (found[number]["reason"], row["offset"]) == (None, number)
            assert (
                row[
                    next(
                        (c.name for c in NESTED.columns if reason.startswith(f"{c.place}: expected {c.type}, ")), "user"
                    )
                ]
                is None
            )
    for number, (reason, values) in enumerate(OF_KAFKA.values(), first):
        refused = reason is not None and on_error == "reject"
        assert found[number]["reason"] == (reason if refused else None)
        row = found[number]["n_row"]
        assert row is None if refused else row.asDict() == nothing | values | {"offset": number}
