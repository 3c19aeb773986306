"""The boards that the tests run, and random events for any of them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from harness import Event
from hypothesis import strategies as st

from liveboard.config import Board, Join, Source
from liveboard.contract.schema import Column

FIRST_MS = 1_700_000_000_000


def _source(name: str, schema: str, **options: Any) -> Source:
    return Source(name=name, topic=name, schema=schema, table=f"{name}_ui", **options)


def _board(sources: list[Source], joins: list[Join]) -> Board:
    return Board(sources={s.name: s for s in sources}, joins={j.name: j for j in joins})


USERS = _source("users", "userId string, name string, email string, age bigint")
ACCOUNTS = _source("accounts", "userId string, accountType string, balance double", max_value_bytes=2_000)


def _join(name: str, left: str, right: str, how: Any, salt: int = 1, on: str = "userId") -> Join:
    return Join(name=name, left=left, right=right, on=on, how=how, salt=salt)


def default_board(how: str = "left") -> Board:
    """The board that comes with liveboard."""
    return _board(
        [USERS, ACCOUNTS],
        [_join("final_ui", "users", "accounts", how), _join("user_account", "accounts", "users", "asof")],
    )


def one_join(how: str, salt: int = 1) -> Board:
    """Only one join; as-of is driven by the accounts, as in the default board."""
    left, right = ("accounts", "users") if how == "asof" else ("users", "accounts")
    return _board([USERS, ACCOUNTS], [_join(how, left, right, how, salt)])


EVERY_JOIN = _board(
    [USERS, ACCOUNTS],
    [
        _join("left_join", "users", "accounts", "left"),
        _join("inner_join", "users", "accounts", "inner"),
        _join("asof_join", "accounts", "users", "asof"),
        _join("salted_left", "users", "accounts", "left", salt=3),
        _join("salted_inner", "users", "accounts", "inner", salt=3),
        _join("salted_asof", "accounts", "users", "asof", salt=4),
    ],
)

# Nothing in common with the default board: three sources, two keys, every type, a name that is taken.
SHIPPING = _board(
    [
        _source("orders", "`order no` bigint, sku string, placed timestamp, due date, urgent boolean"),
        _source("items", "sku string, `unit price` double, stock int, due date", on_error="null"),
        _source("trucks", "`order no` bigint, plate string, loaded boolean"),
    ],
    [
        _join("order_items", "orders", "items", "left", on="sku"),
        _join("order_trucks", "trucks", "orders", "asof", salt=2, on="order no"),
        _join("order_pairs", "orders", "trucks", "inner", on="order no"),
    ],
)

_TEXTS = st.sampled_from(["a", 'Ada "Q" \\', "5", "-1", "true", "{}", "é😀", "", "\n\t\x00", "null", '"']) | st.text(
    max_size=8
)
_VALUES: dict[str, st.SearchStrategy[Any]] = {
    "string": _TEXTS,
    "boolean": st.booleans(),
    "int": st.integers(-(2**31), 2**31 - 1),
    "bigint": st.integers(-(2**63), 2**63 - 1) | st.sampled_from([0, 2**53, 2**53 + 1, -(2**53) - 1]),
    "double": st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**70), 2**70),
    "date": st.dates().map(str),
    "timestamp": st.sampled_from(["2024-02-29T23:59:59Z", "2024-02-29 00:00:00.5", "1999-12-31T23:59:59.123456+05:30"]),
}
# JSON texts that are right for no type, or only for some: the oracle knows which.
_ODD = st.sampled_from(
    [
        '"x"',
        "3.7",
        "42.0",
        "1e2",
        "99999999999999999999",
        "NaN",
        "-Infinity",
        "1e400",
        '"42"',
        "42",
        "true",
        "[1]",
        '{"a":1}',
        '"2024-02-30"',
        '"24-01-01"',
        "1700000000",
        "null",
        "-0",
        "2147483648",
        '"NaN"',
    ]
)
_BROKEN = st.sampled_from(
    [
        b"",
        b" ",
        b"null",
        b"12",
        b'"x"',
        b"[{}]",
        b"{",
        b"{}x",
        b"{}{}",
        b"{'a':1}",
        b'{"a":1,}',
        b'{"a":01}',
        b'{"a":\xff}',
        b"\xc3(",
        b'{"a":"\n"}',
        b"\x00",
        b'{"sku":"\xed\xa0\x80"}',
        b'{"userId":"' + b"x" * 2000 + b'"}',
    ]
) | st.binary(max_size=12)


@st.composite
def _document(draw: st.DrawFn, source: Source, keys: dict[str, list[Any]]) -> bytes:
    members = []
    for column in source.columns:
        kind = draw(st.integers(0, 19))
        if kind == 0:
            continue
        if kind == 1:
            text = draw(_ODD)
        elif column.name in keys:
            text = json.dumps(draw(st.sampled_from(keys[column.name])))
        else:
            text = json.dumps(draw(_VALUES[column.type] | st.none()), ensure_ascii=draw(st.booleans()))
        members.append(f"{json.dumps(column.name)}:{text}")
    if draw(st.integers(0, 9)) == 0:
        members.append('"unknown":{"nested":[1,"}",null]}')
    blank = draw(st.sampled_from(["", " "]))
    return f"{blank}{{{','.join(members)}}}{blank}".encode("utf-8", "surrogatepass")


def events(board: Board, partitions: int, *, most: int) -> st.SearchStrategy[list[Event]]:
    """Random events of the board: few keys, few timestamps, some records broken, some tombstones."""
    keys = {join.on: _key_values(_column(board, join)) for join in board.joins.values()}

    @st.composite
    def event(draw: st.DrawFn) -> Event:
        source = board.sources[draw(st.sampled_from(sorted(board.sources)))]
        kind = draw(st.integers(0, 19))
        value = None if kind == 0 else draw(_BROKEN if kind == 1 else _document(source, keys))
        return Event(source.name, value, FIRST_MS + draw(st.integers(0, 9)), draw(st.integers(0, partitions - 1)))

    return st.lists(event(), min_size=most // 2, max_size=most)


def _column(board: Board, join: Join) -> Column:
    return next(column for column in board.sources[join.left].columns if column.name == join.on)


def _key_values(column: Column) -> list[Any]:
    return ["k", '"', "7", "", None] if column.type == "string" else [1, 2, -(2**63), 2**53 + 1, None]


def with_suffix(board: Board, suffix: str) -> Board:
    """The same board on topics of other names."""
    sources = {name: replace(s, topic=f"{s.topic}-{suffix}") for name, s in board.sources.items()}
    return replace(board, sources=sources)
