"""B40: groups of a table by key follow from the rows that it has, whatever was written in between."""

from __future__ import annotations

import json
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from liveboard.contract.board import Aggregate, Source
from liveboard.contract.changelog import timestamp_text
from liveboard.contract.expressions import parse_expression
from liveboard.counting.groups import Groups
from liveboard.counting.values import compiled

SOURCE = Source(
    name="stock",
    topic="stock",
    table="stock_ui",
    schema="sku string, shop string, amount int, total bigint, weight double, price decimal(6,2)",
    mode="upsert",
    key=("sku",),
)
MEASURES = {
    "rows": "count(*)",
    "known": "count(amount)",
    "amount": "sum(amount)",
    "total": "sum(total)",
    "weight": "sum(weight)",
    "price": "sum(price)",
    "mean": "avg(price)",
    "least": "min(weight)",
    "dearest": "max(price)",
    "last": "max(sku)",
    "longest": "max(total)",
    "newest": "max(ts)",
}
BY_SHOP = Aggregate(
    name="by_shop", source="stock", by=("shop",), where="amount >= 0 OR amount IS NULL", measures=MEASURES
)
SLIDING = Aggregate(
    name="sliding", source="stock", window=4, slide=2, measures={"rows": "count(*)", "most": "max(amount)"}
)

Row = list[Any]
Change = tuple[int, Row | None]


def _or_none(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | values


ROWS = st.builds(
    lambda shop, amount, total, weight, price, ms: [
        shop,
        amount,
        str(total) if total is not None and abs(total) > 2**53 else total,
        weight,
        None if price is None else f"{price:.2f}",
        timestamp_text(1_700_000_000_000 + ms),
    ],
    _or_none(st.sampled_from(["a", 'b"', "é"])),
    _or_none(st.integers(-5, 2**31 - 1)),
    _or_none(st.integers(-(2**63), 2**63 - 1)),
    _or_none(st.floats(allow_nan=False, allow_infinity=False)),
    _or_none(st.decimals(-9999, 9999, places=2)),
    st.integers(0, 9),
)
CHANGES = st.lists(st.tuples(st.integers(0, 5), _or_none(ROWS)), max_size=40)


def key(number: int) -> bytes:
    return f'="s{number}"'.encode()


def take(groups: Groups, changes: Iterable[Change]) -> None:
    for number, row in changes:
        groups.take(key(number), None if row is None else [f"s{number}", *row])


def applied(shown: dict[bytes, bytes], changed: dict[bytes, bytes | None]) -> None:
    for each, value in changed.items():
        if value is None:
            shown.pop(each, None)
        else:
            shown[each] = value


@given(CHANGES, st.lists(st.integers(0, 39)), st.integers(0, 39))
def test_b40_updates_and_removals_leave_what_the_rows_alone_come_to(
    changes: list[Change], asked: list[int], replayed: int
) -> None:
    # What comes after a crash once more, from somewhere before its end.
    changes = [*changes, *changes[replayed:]]
    groups, shown = Groups(BY_SHOP, SOURCE), dict[bytes, bytes]()
    for at, change in enumerate(changes):
        take(groups, [change])
        if at in asked:
            applied(shown, groups.changed())
    applied(shown, groups.changed())
    rows = [[f"s{number}", *row] for number, row in dict(changes).items() if row is not None]
    assert {each.decode(): json.loads(value) for each, value in shown.items()} == expected(rows)
    assert groups.keys() == shown.keys()
    assert groups.changed() == {}


def expected(rows: list[Row]) -> dict[str, Row]:
    counted = [row for row in rows if row[2] is None or row[2] >= 0]
    by_shop: dict[Any, list[Row]] = {}
    for row in counted:
        by_shop.setdefault(row[1], []).append(row)
    return {f"={json.dumps(shop, ensure_ascii=False)}": [shop, *_measured(found)] for shop, found in by_shop.items()}


def _measured(rows: list[Row]) -> Row:
    known = [[value for row in rows if (value := row[place]) is not None] for place in range(len(rows[0]))]
    skus, _, amounts, totals, weights, prices, times = known
    exact, whole = [Decimal(price) for price in prices], [int(total) for total in totals]
    weight = sum(map(Fraction, weights), Fraction(0))
    longest = max(whole, default=None)
    return [
        len(rows),
        len(amounts),
        sum(amounts) if amounts else None,
        str(sum(whole)) if whole else None,
        _float(weight) if weights else None,
        f"{sum(exact):.2f}" if exact else None,
        float(sum(exact)) / len(exact) if exact else None,
        min(weights, default=None),
        f"{max(exact):.2f}" if exact else None,
        max(skus),
        longest if longest is None or abs(longest) <= 2**53 else str(longest),
        max(times),
        max(times),
    ]


def _float(value: Fraction) -> float | None:
    try:
        return float(value)
    except OverflowError:
        return None


@given(CHANGES)
def test_b40_a_row_that_moves_in_time_moves_between_windows(changes: list[Change]) -> None:
    groups = Groups(SLIDING, SOURCE)
    take(groups, changes)
    found = {each: json.loads(value) for each, value in groups.changed().items() if value is not None}
    rows = [row for row in dict(changes).values() if row is not None]
    counts: dict[str, int] = {}
    for row in rows:
        ms = int(row[-1][-5:-4]) if row[-1].endswith("00Z") else 0
        for start in range(ms - ms % 2, ms - 4, -2):
            text = timestamp_text(1_700_000_000_000 + start)
            counts[text] = counts.get(text, 0) + 1
    assert {row[0]: row[2] for row in found.values()} == counts


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("-7 % 3", -1),
        ("a % 0", None),
        ("a / 0", None),
        ("a / 2", 2.5),
        ("d % 2", -1.5),
        ("abs(d)", 3.5),
        ("abs(c) * 2", Decimal("2.50")),
        ("c % 1", Decimal("-0.25")),
        ("coalesce(nothing, c, 1)", Decimal("-1.25")),
        ("coalesce(nothing, 1)", 1),
        ("nothing = 1 OR TRUE", True),
        ("nothing = 1 AND FALSE", False),
        ("NOT nothing = 1", None),
        ("s LIKE 'A_a%'", True),
        ("s LIKE 'a%'", False),
        ("c < d", False),
        ("a > c", True),
        ("day >= '2026-01-31'", True),
        ("at < '2026-01-31T09:30:00+01:00'", False),
        ("at = '2026-01-31T08:30:00.5Z'", True),
        ("9223372036854775807 + a", None),
        ("c BETWEEN -1.25 AND 0", True),
    ],
)
def test_b40_expressions_are_computed_as_spark_does(text: str, expected: Any) -> None:
    columns = {
        "a": "int",
        "d": "double",
        "c": "decimal(6,2)",
        "s": "string",
        "nothing": "int",
        "day": "date",
        "at": "timestamp",
    }
    row = [5, -3.5, "-1.25", "Ada\n", None, "2026-01-31", "2026-01-31T08:30:00.500000Z"]
    places = {name: place for place, name in enumerate(columns)}
    found = compiled(parse_expression(text, columns), places)(row)
    assert (found, type(found)) == (expected, type(expected))
