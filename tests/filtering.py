"""Random rows of every type, and random filters over them."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from liveboard.contract.schema import TS, Column

COLUMNS = (
    Column("name", "string"),
    Column("age", "bigint"),
    Column("balance", "double"),
    Column("vip", "boolean"),
    Column("born", "date"),
    Column("city", "string"),
    Column("price", "decimal(10,2)"),
    Column("document", "json"),
    Column("bytes", "binary"),
    TS,
)
WORDS = st.one_of(
    st.sampled_from(
        [
            "",
            "Ada",
            "ada",
            "ADA",
            "Grüße",
            "GRÜSSE",
            "İstanbul",
            "ΑΣ",
            "ας",
            "a%b_c",
            "a\\b",
            "x'y\"z",
            "\u0000",
            "a\x1fb",
        ]
    ),
    st.text(max_size=4),
)
AGES = st.one_of(st.integers(-3, 3), st.sampled_from([2**53, 2**53 + 1, -(2**63), 2**63 - 1]))
BALANCES = st.one_of(st.integers(-3, 3).map(float), st.floats(allow_nan=False, allow_infinity=False))
DATES = st.dates().map(str)
TIMES = st.integers(0, 9).map(lambda second: f"2026-01-31T09:30:0{second}.000000Z")
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "name": WORDS,
    "age": AGES,
    "balance": BALANCES,
    "vip": st.booleans(),
    "born": DATES,
    "city": WORDS,
    "price": st.sampled_from(["-2.00", "0.00", "2.00", "10.00", "9.50", "99999999.99", "-99999999.99"]),
    "document": st.sampled_from(['{"a":"Ada"}', '{"a":[1,2]}', '"ada"', "7"]),
    "bytes": st.sampled_from(["", "AAE=", "QWRh"]),
    "ts": TIMES,
}
# What a filter may ask for beside them.
WANTED = VALUES | {
    "price": VALUES["price"] | st.sampled_from([2, 9.5, 9.501, "10", "9.5000001", 1e30, -1e30, "99999999.999", "1e7"])
}
UNORDERED = ("vip", "document", "bytes")
ROWS = st.tuples(*(st.one_of(st.none(), VALUES[column.name]) for column in COLUMNS[:-1]), TIMES)
NAMES = st.sampled_from([column.name for column in COLUMNS])
SORTS = st.lists(st.tuples(NAMES, st.sampled_from(["asc", "desc"])), max_size=3)


def _conditions(name: str) -> st.SearchStrategy[list[Any]]:
    value = WANTED[name]
    comparisons = ["=", "!="] if name in UNORDERED else ["=", "!=", "<", "<=", ">", ">="]
    kinds = [
        st.tuples(st.just(name), st.sampled_from(comparisons), value),
        st.tuples(st.just(name), st.just("in"), st.lists(value, max_size=3)),
        st.tuples(st.just(name), st.sampled_from(["is null", "is not null"])),
    ]
    if name not in UNORDERED:
        kinds.append(st.tuples(st.just(name), st.just("between"), st.lists(value, min_size=2, max_size=2)))
    if name in ("name", "city", "document"):
        kinds.append(st.tuples(st.just(name), st.sampled_from(["contains", "starts with"]), value))
    return st.one_of(*kinds).map(list)


FILTERS = st.lists(NAMES.flatmap(_conditions), max_size=2)


def encoded(row: tuple[Any, ...]) -> bytes:
    """A changelog value: integers beyond 2^53 as texts."""
    far = [str(value) if type(value) is int and abs(value) > 2**53 else value for value in row]
    return json.dumps(far, ensure_ascii=False).encode()
