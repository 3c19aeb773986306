"""What a swap would bring, judged by a few records."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from liveboard.contract.schema import Column, parse_schema
from liveboard.serving.preview import Preview, judged

COLUMNS = parse_schema(
    "id string, ok boolean, n int, big bigint, x double, price decimal(5,2), day date, at timestamp, all json, "
    "raw binary"
)


def preview(*documents: Any) -> Preview:
    values = [each if isinstance(each, bytes) else orjson.dumps(each) for each in documents]
    return judged("users", "topic", len(values), values, COLUMNS)


def test_records_that_fit_and_columns_that_stay_empty() -> None:
    found = preview(
        {"id": "a", "ok": True, "n": 1, "big": 2**60, "x": 1, "price": "12.50", "all": [1], "raw": "AAE="},
        {"id": None, "day": "2026-01-31", "price": 1e2, "other": {}},
    )
    assert (found.sampled, found.fitting, found.reasons, found.empty) == (2, 2, (), ("at",))


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        (b"{", "expected a JSON object, found something else"),
        ([1], "expected a JSON object, found something else"),
        ({"id": {"a": 1}}, "id: expected string, found object"),
        ({"id": 1}, "id: expected string, found number"),
        ({"ok": "yes"}, "ok: expected boolean, found string"),
        ({"n": 2**31}, "n: expected int, found number"),
        ({"n": True}, "n: expected int, found boolean"),
        ({"big": 3.7}, "big: expected bigint, found number"),
        ({"x": "1"}, "x: expected double, found string"),
        ({"price": 1.005}, "price: expected decimal(5,2), found number"),
        ({"price": "1000"}, "price: expected decimal(5,2), found string"),
        ({"price": "1/2"}, "price: expected decimal(5,2), found string"),
        ({"price": True}, "price: expected decimal(5,2), found boolean"),
        ({"raw": "AA"}, "raw: expected binary, found string"),
        ({"day": "tomorrow"}, "day: expected date, found string"),
        ({"at": [1]}, "at: expected timestamp, found array"),
    ],
)
def test_a_record_that_would_be_rejected_says_why(document: Any, reason: str) -> None:
    found = preview(document, {"id": "a"})
    assert (found.fitting, found.reasons) == (1, (reason,))


def test_nothing_is_said_of_columns_where_nothing_fits() -> None:
    assert preview([]).empty == ()


def test_columns_are_looked_for_where_they_are_in_the_document() -> None:
    city = Column("city", "string", path=("customer", "cities", 0))
    columns = (city, Column("placed", "timestamp", unit="ms"), Column("from", "int", origin="partition"))
    values = [orjson.dumps(each) for each in ({"customer": {"cities": ["Paris"]}, "placed": 1}, {"customer": 5})]
    found = judged("orders", "topic", 2, values, columns)
    assert (found.fitting, found.empty) == (2, ())
    wrong = judged("orders", "topic", 1, [orjson.dumps({"customer": {"cities": [7]}})], columns)
    assert wrong.reasons == ("customer.cities[0]: expected string, found number",)


def test_a_change_of_a_database_is_judged_by_its_row() -> None:
    values = [orjson.dumps(each) for each in ({"after": {"n": 1}}, {"payload": {"before": {"n": "x"}, "after": None}})]
    found = judged("customers", "topic", 2, values, (Column("n", "int"),), "debezium")
    assert (found.fitting, found.reasons) == (1, ("n: expected int, found string",))
