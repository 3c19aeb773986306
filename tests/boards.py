"""The boards that the tests run, and random events for any of them."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import Any

from harness import Event
from hypothesis import strategies as st

from liveboard.contract.board import Aggregate, Board, Join, Source
from liveboard.contract.paths import Step
from liveboard.contract.schema import Column

FIRST_MS = 1_700_000_000_000


def _source(name: str, schema: str = "", **options: Any) -> Source:
    return Source(name=name, topic=name, schema=schema, table=f"{name}_ui", **options)


def _board(sources: list[Source], joins: list[Join], aggregates: list[Aggregate] | None = None) -> Board:
    return Board(
        sources={s.name: s for s in sources},
        joins={j.name: j for j in joins},
        aggregates={a.name: a for a in aggregates or ()},
    )


USERS = _source("users", "userId string, name string, email string, age bigint")
ACCOUNTS = _source("accounts", "userId string, accountType string, balance double", max_value_bytes=2_000)


def _join(name: str, left: str, right: str, how: Any, history: Any = None, on: str = "userId") -> Join:
    return Join(name=name, left=left, right=right, on=on, how=how, history=history)


BY_TYPE = Aggregate(
    name="by_type",
    source="accounts",
    by=("accountType",),
    measures={"accounts": "count(*)", "total": "sum(balance)", "largest": "max(balance)"},
)


def default_board(how: str = "left") -> Board:
    """The board that comes with liveboard."""
    return _board(
        [USERS, ACCOUNTS],
        [_join("final_ui", "users", "accounts", how), _join("user_account", "accounts", "users", "asof")],
        [BY_TYPE],
    )


def one_join(how: str, history: Any = None) -> Board:
    """Only one join; as-of is driven by the accounts, as in the default board."""
    left, right = ("accounts", "users") if how == "asof" else ("users", "accounts")
    return _board([USERS, ACCOUNTS], [_join(how, left, right, how, history)])


EVERY_JOIN = _board(
    [USERS, ACCOUNTS],
    [
        _join("left_join", "users", "accounts", "left"),
        _join("inner_join", "users", "accounts", "inner"),
        _join("asof_join", "accounts", "users", "asof"),
        _join("other_left", "accounts", "users", "left"),
        _join("other_inner", "accounts", "users", "inner"),
        _join("other_asof", "users", "accounts", "asof"),
    ],
    [
        Aggregate(
            name="by_type",
            source="accounts",
            by=("accountType",),
            measures={
                "accounts": "count(*)",
                "known": "count(balance)",
                "total": "SUM(balance)",
                "mean": "avg(balance)",
                "least": "min(balance)",
                "largest": "max(balance)",
                "newest": "max(ts)",
            },
        ),
        Aggregate(
            name="of_age",
            source="users",
            where="age > 0 AND NOT name IN ('a', 'null')",
            measures={"people": "count(*)", "years": "sum(age)", "mean": "avg(age)", "last": "max(name)"},
        ),
        Aggregate(
            name="lately",
            source="accounts",
            by=("userId",),
            where="balance IS NOT NULL",
            window=4,
            slide=2,
            keep=3,
            measures={"accounts": "count(*)", "twice": "sum(balance * 2)", "first": "min(accountType)"},
        ),
        Aggregate(name="by_time", source="users", window=5, measures={"users": "count(userId)", "oldest": "max(age)"}),
        Aggregate(name="for_now", source="users", window=3, keep=2, measures={"users": "count(*)"}),
    ],
)


def by_key(board: Board, *sources: str, key: Any = ("userId",)) -> Board:
    """The same board with these sources as tables by key, and without their aggregates."""
    changed = {name: replace(board.sources[name], mode="upsert", key=key) for name in sources}
    aggregates = {name: each for name, each in board.aggregates.items() if each.source not in sources}
    return replace(board, sources={**board.sources, **changed}, aggregates=aggregates)


# A table by key that is in no join, and has a key of two columns.
STOCK = _board(
    [
        _source(
            "stock",
            "amount int, `shelf no` bigint, sku string",
            mode="upsert",
            key=("sku", "shelf no"),
            on_error="null",
        )
    ],
    [],
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
        _join("order_trucks", "trucks", "orders", "asof", on="order no"),
        _join("order_pairs", "orders", "trucks", "inner", on="order no"),
    ],
    [
        Aggregate(
            name="by_urgency",
            source="orders",
            by=("urgent", "sku"),
            measures={
                "latest": "max(placed)",
                "first": "min(due)",
                "numbers": "sum(`order no`)",
                "known": "count(urgent)",
            },
        ),
        Aggregate(
            name="stocks",
            source="items",
            by=("due",),
            where="stock > 0 OR `unit price` BETWEEN -100.5 AND 1000",
            measures={"all": "sum(stock)", "mean": "avg(stock)", "least": "min(sku)", "double": "max(stock * 2)"},
        ),
    ],
)

# Nested documents: paths alone, paths into what is also a column as a whole, and the whole document.
SHOP = _board(
    [
        _source(
            "orders",
            columns=(
                Column("total", "decimal(12,2)", ("payment", "total")),
                Column("orderId", "bigint"),
                Column("city", "string", ("customer", "address", "city")),
                Column("vip", "boolean", ("customer", "vip")),
                Column("first", "string", ("items", 0, "sku")),
                Column("price", "decimal(38,18)", ("items", 1, "price")),
                Column("count", "int", ("items", 1, "count")),
                Column("placed", "timestamp", ("placedAt",), "ms"),
                Column("spot", "double", ("place", 1, 0)),
                Column("photo", "binary", ("payment", "photo")),
                Column("key", "string", origin="key"),
                Column("trace", "bigint", origin="headers.trace-id"),
                Column("partition", "int", origin="partition"),
                Column("at", "timestamp", origin="timestamp"),
            ),
        ),
        _source(
            "payments",
            columns=(
                Column("total", "decimal(12,2)", ("amount", "a.b c")),
                Column("raw", "json", ()),
                Column("tags", "json"),
                Column("tag", "string", ("tags", 1)),
                Column("paid", "timestamp", ("paid", "at"), "s"),
                Column("position", "bigint", origin="offset"),
            ),
            on_error="null",
        ),
        _source(
            "visits",
            columns=(
                Column("orderId", "bigint", ("order", "id")),
                Column("order", "json"),
                Column("person", "json", ("people", 0)),
                Column("name", "string", ("people", 0, "name")),
                Column("day", "date", ("times", "day")),
                Column("left", "timestamp", ("times", "left"), "us"),
                Column("key", "bigint", origin="key"),
                Column("note", "json", origin="headers.note"),
            ),
        ),
    ],
    [
        _join("order_payments", "orders", "payments", "left", on="total"),
        _join("order_visits", "visits", "orders", "inner", on="orderId"),
    ],
    [
        Aggregate(
            name="revenue",
            source="orders",
            by=("vip", "orderId"),
            measures={
                "orders": "count(*)",
                "total": "sum(total)",
                "dearest": "max(price)",
                "mean": "avg(total)",
                "doubled": "sum(total * 2)",
                "photos": "count(photo)",
            },
        ),
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
    "decimal": st.decimals(-(10**9), 10**9, places=2).map(str) | st.integers(-(10**10), 10**10) | st.just(0.25),
    "date": st.dates().map(str),
    "timestamp": st.sampled_from(["2024-02-29T23:59:59Z", "2024-02-29 00:00:00.5", "1999-12-31T23:59:59.123456+05:30"]),
    "json": st.sampled_from([{"b": [1, 2.5, None], "a": {"é": "x y"}}, [], {}, "text", 7, False]),
    "binary": st.binary(max_size=80).map(lambda found: base64.b64encode(found).decode()),
}
_EPOCHS = st.sampled_from([1_700_000_000, 1_700_000_000_123, 0, -1, 1.5, 253_402_300_799, 253_402_300_800, 10**18])
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
            text = json.dumps(draw(_VALUES[column.kind.name] | st.none()), ensure_ascii=draw(st.booleans()))
        members.append(f"{json.dumps(column.name)}:{text}")
    if draw(st.integers(0, 9)) == 0:
        members.append('"unknown":{"nested":[1,"}",null]}')
    blank = draw(st.sampled_from(["", " "]))
    return f"{blank}{{{','.join(members)}}}{blank}".encode("utf-8", "surrogatepass")


@st.composite
def _kafka_key(draw: st.DrawFn, source: Source, keys: dict[str, list[Any]]) -> bytes | None:
    """Of a tombstone, in one of the ways in which it can be written; some are wrong."""
    values = {name: draw(st.sampled_from(keys[name])) for name in source.key}
    ways = [json.dumps(values), json.dumps({**values, "other": 1})]
    if len(values) == 1:
        (value,) = values.values()
        ways += [json.dumps(value), value if isinstance(value, str) else str(value)] * 2
    wrong = st.sampled_from([None, b"{}", b"\xff", b"[1]", b'{"sku":[]}', b"", b"{", b"1.5"])
    return draw(wrong) if draw(st.integers(0, 9)) == 0 else draw(st.sampled_from(ways)).encode()


@st.composite
def _nested_document(draw: st.DrawFn, source: Source, keys: dict[str, list[Any]]) -> bytes:
    """A document with the source's paths in it, now and then with something else on the way."""
    tree: dict[Step, Any] = {}
    in_values = [column for column in source.columns if not column.origin]
    # The longest first: a column that is what others are inside of is made of them.
    for column in sorted(in_values, key=lambda column: -len(column.steps)):
        if not column.steps or draw(st.integers(0, 14)) == 0:
            continue
        node = tree
        for step in column.steps[:-1]:
            node = node.setdefault(step, {})
        values = _VALUES[column.kind.name] | (_EPOCHS if column.unit else st.none())
        if column.name in keys:
            values = st.sampled_from(keys[column.name])
        odd = draw(st.integers(0, 19)) == 0
        node.setdefault(column.steps[-1], draw(_ODD) if odd else json.dumps(draw(values)))
    return _written(draw, tree).encode()


def _written(draw: st.DrawFn, tree: dict[Step, Any] | str) -> str:
    if isinstance(tree, str):
        return tree
    blank = draw(st.sampled_from(["", " "]))
    inside = {
        step: draw(_ODD) if isinstance(child, dict) and draw(st.integers(0, 29)) == 0 else _written(draw, child)
        for step, child in tree.items()
    }
    if any(isinstance(step, int) for step in tree):
        length = max(step for step in tree if isinstance(step, int)) + 1
        elements = [inside.get(number, "null") for number in range(length)]
        # Elements that no column is made of.
        elements += draw(st.lists(_ODD, max_size=1))
        return f"[{blank}{','.join(elements[: draw(st.sampled_from([9, 9, 9, 1, 0]))])}]"
    return "{" + f"{blank},".join(f"{json.dumps(name)}:{blank}{text}" for name, text in inside.items()) + "}"


_KEYS = st.sampled_from([None, b"k", b"7", b"", b"\xff", b"null"])
_HEADERS = st.lists(
    st.tuples(
        st.sampled_from(["trace-id", "note", "other"]), st.sampled_from([b"1", b'{"b": [1], "a":2}', b"x", None])
    ),
    max_size=3,
).map(tuple)


def events(board: Board, partitions: int, *, most: int) -> st.SearchStrategy[list[Event]]:
    """Random events of the board: few keys, few timestamps, some records broken, some tombstones."""
    keys = {join.on: _key_values(_column(board, join)) for join in board.joins.values()}
    for source in board.sources.values():
        by = [name for each in board.aggregates.values() if each.source == source.name for name in each.by]
        keys |= {c.name: _key_values(c) for c in source.columns if c.name in (*source.key, *by)}

    @st.composite
    def event(draw: st.DrawFn) -> Event:
        source = board.sources[draw(st.sampled_from(sorted(board.sources)))]
        kind = draw(st.integers(0, 19))
        removes = kind in range(2, 7) and source.by_key
        document = _nested_document if any(column.path is not None for column in source.columns) else _document
        value = None if kind == 0 or removes else draw(_BROKEN if kind == 1 else document(source, keys))
        at, partition = FIRST_MS + draw(st.integers(0, 9)), draw(st.integers(0, partitions - 1))
        made = Event(source.name, value, at, partition, draw(_kafka_key(source, keys)) if removes else None)
        if any(column.origin for column in source.columns):
            made = replace(made, key=made.key if removes else draw(_KEYS), headers=draw(_HEADERS))
        return made

    return st.lists(event(), min_size=most // 2, max_size=most).filter(varied)


def varied(found: list[Event]) -> bool:
    """Not the example that hypothesis begins with, in which everything is the simplest and so the same."""
    return len(set(found)) > len(found) // 2


def _column(board: Board, join: Join) -> Column:
    return next(column for column in board.sources[join.left].columns if column.name == join.on)


def _key_values(column: Column) -> list[Any]:
    keys: dict[str, list[Any]] = {
        "string": ["k", '"', "7", "", None],
        "decimal": [1, 1.5, "1.50", "0.10", 0.1, None],
        "boolean": [True, False, None],
        "date": ["2026-01-31", "1999-12-31", None],
    }
    return keys.get(column.kind.name, [1, 2, -(2**63), 2**53 + 1, None])


def with_suffix(board: Board, suffix: str) -> Board:
    """The same board on topics of other names."""
    sources = {name: replace(s, topic=f"{s.topic}-{suffix}") for name, s in board.sources.items()}
    return replace(board, sources=sources)
