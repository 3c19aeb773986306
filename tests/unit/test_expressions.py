"""Conditions and measures of aggregates: what they mean, and what is said of those that mean nothing."""

from __future__ import annotations

import pytest

from liveboard.contract.aggregates import parse_measure
from liveboard.contract.expressions import ExpressionError, parse_condition, parse_expression

COLUMNS = {
    "name": "string",
    "unit price": "double",
    "n": "int",
    "big": "bigint",
    "cost": "decimal(10,2)",
    "day": "date",
    "ok": "boolean",
    "doc": "json",
    "photo": "binary",
    "ts": "timestamp",
}


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("n + 1", "bigint"),
        ("n / 2", "double"),
        ("-n", "bigint"),
        ("`unit price` * 1.5", "double"),
        ("cost + 1.125", "decimal(12,3)"),
        ("cost * n", "decimal(20,2)"),
        ("cost % 7", "decimal(12,2)"),
        ("abs(cost)", "decimal(10,2)"),
        ("length(lower(name))", "int"),
        ("coalesce(n, big)", "bigint"),
        ("coalesce(cost, 0.001)", "decimal(11,3)"),
        ("NOT ok OR name LIKE 'a%' AND day >= '2026-01-31'", "boolean"),
        ("n in (1, 2, 3)", "boolean"),
        ("cost NOT BETWEEN 1 and 2.5", "boolean"),
        ("doc IS NOT NULL", "boolean"),
        ('ts < "2026-01-31T09:30:00Z"', "boolean"),
        ("ok = TRUE", "boolean"),
    ],
)
def test_b40_every_expression_has_a_type(text: str, type_: str) -> None:
    assert parse_expression(text, COLUMNS).type == type_


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("nam = 'x'", 'expected a column (name, unit price, n, big, cost, day, ok, doc, photo, ts), found "nam"'),
        ("n", "expected a condition such as balance > 0, found a int"),
        ("n > 'x'", "expected two values of one type around >, found int and string"),
        ("doc = 'x'", "expected something that can be compared, found a json"),
        ("day > '2026-02-30'", "expected a date such as '2026-01-31', found '2026-02-30'"),
        ("n >", "expected a column or a value, found the end"),
        ("n > 1 2", 'expected an operator or the end, found "2"'),
        ("n > 1; DROP TABLE x", 'expected a column, a value or an operator, found "; DROP TABLE x"'),
        ("rand() > 0", 'expected a function (abs, coalesce, lower, upper, length), found "rand"'),
        (
            "(SELECT 1) > 0",
            'expected a column (name, unit price, n, big, cost, day, ok, doc, photo, ts), found "SELECT"',
        ),
        ("name + 1 > 0", "expected numbers around +, found a string"),
        ("name AND ok", "expected conditions around AND, found a string"),
        ("ok NOT > 1", 'expected IN, BETWEEN or LIKE after NOT, found ">"'),
        ("n = 99999999999999999999", "expected an integer of 64 bits, found 99999999999999999999"),
        ("cost * cost * cost * cost > 0", "expected at most 38 digits of *, found 40"),
        ("name LIKE name", "expected LIKE between a text and a pattern such as 'a%'"),
        ("", "expected a column or a value, found the end"),
    ],
)
def test_b40_a_wrong_condition_is_told_as_what_it_is(text: str, problem: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse_condition(text, COLUMNS)
    assert str(caught.value).startswith(problem)


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("count(*)", "bigint"),
        (" COUNT ( doc ) ", "bigint"),
        ("sum(n)", "bigint"),
        ("sum(big)", "decimal(38,0)"),
        ("sum(cost)", "decimal(20,2)"),
        ("sum(`unit price` * n)", "double"),
        ("avg(big)", "double"),
        ("min(name)", "string"),
        ("max(ts)", "timestamp"),
    ],
)
def test_b40_every_measure_has_a_type(text: str, type_: str) -> None:
    assert parse_measure("x", text, COLUMNS).type == type_


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "total",
            'expected a measure such as count(*), sum(balance), avg(balance), min(balance) or max(ts), found "total"',
        ),
        ("median(n)", "expected a measure such as"),
        (
            "count(distinct name)",
            'expected a column (name, unit price, n, big, cost, day, ok, doc, photo, ts), found "distinct"',
        ),
        ("sum(*)", "expected a column in sum(…), found *"),
        ("sum(name)", "expected a number in sum(…), found a string"),
        ("max(ok)", "expected something that has an order in max(…), found a boolean"),
    ],
)
def test_b40_a_wrong_measure_is_told_as_what_it_is(text: str, problem: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse_measure("x", text, COLUMNS)
    assert str(caught.value).startswith(problem)
