"""What an answer becomes: columns of the board's own types, and rows as changelogs have them, each with a key."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any

import orjson
import pyarrow as pa

from liveboard.contract.changelog import BY_KEY
from liveboard.contract.schema import Column

Row = tuple[bytes, bytes]
"""A row's key and its value."""

_TIME = "strftime({}, '%Y-%m-%dT%H:%M:%S.%fZ')"
# The board's type of what DuckDB has, and how it is made of it; the texts are those of the wire.
_TYPES = {
    "VARCHAR": ("string", "{}"),
    "BOOLEAN": ("boolean", "{}"),
    "TINYINT": ("int", "{}"),
    "SMALLINT": ("int", "{}"),
    "INTEGER": ("int", "{}"),
    "UTINYINT": ("int", "{}"),
    "USMALLINT": ("int", "{}"),
    "UINTEGER": ("bigint", "{}::BIGINT"),
    "BIGINT": ("bigint", "{}"),
    "UBIGINT": ("decimal(38,0)", "{}::VARCHAR"),
    "HUGEINT": ("decimal(38,0)", "{}::VARCHAR"),
    "UHUGEINT": ("decimal(38,0)", "{}::VARCHAR"),
    "FLOAT": ("double", "{}::DOUBLE"),
    "DOUBLE": ("double", "{}"),
    "DATE": ("date", "{}::VARCHAR"),
    "TIMESTAMP": ("timestamp", _TIME),
    "TIMESTAMP_S": ("timestamp", _TIME.format("{}::TIMESTAMP")),
    "TIMESTAMP_MS": ("timestamp", _TIME.format("{}::TIMESTAMP")),
    "TIMESTAMP_NS": ("timestamp", _TIME.format("{}::TIMESTAMP")),
    "TIMESTAMP WITH TIME ZONE": ("timestamp", _TIME),
    "BLOB": ("binary", "to_base64({})"),
    "JSON": ("json", "{}::VARCHAR"),
}
_NESTED = re.compile(r".*\[\d*\]|(STRUCT|MAP|UNION|VARIANT)\b.*", re.DOTALL)
_DECIMAL = re.compile(r"DECIMAL\((\d+),(\d+)\)")
_SAFE = 2**53
_SLICE = 1_000


def columns_of(names: Sequence[str], types: Sequence[str]) -> tuple[list[Column], list[str]]:
    """The columns of an answer, and for each the SQL that makes its values; two of one name get numbers."""
    columns: list[Column] = []
    casts: list[str] = []
    taken: set[str] = set()
    for place, (name, type_) in enumerate(zip(names, types, strict=True), 1):
        if digits := _DECIMAL.fullmatch(type_):
            found = (f"decimal({digits[1]},{digits[2]})", "{}::VARCHAR")
        else:
            found = _TYPES.get(type_, ("json", "to_json({})::VARCHAR" if _NESTED.fullmatch(type_) else ""))
            found = found if found[1] else ("string", "{}::VARCHAR")
        number, free = 1, name
        while free.lower() in taken:
            number += 1
            free = f"{name}_{number}"
        taken.add(free.lower())
        columns.append(Column(free, found[0]))
        casts.append(f"{found[1].format(f'#{place}')} AS c{place}")
    return columns, casts


def encoded(answer: pa.Table, columns: Sequence[Column], key: Sequence[int] | None) -> list[Row]:
    """The rows, in the order of the answer; without columns that are their key, it is the row's number."""
    bigints = [place for place, column in enumerate(columns) if column.kind.wire == "int64"]
    rows: list[Row] = []
    seen: dict[bytes, int] = {}
    for values in _values(answer):
        for place in bigints:
            if (value := values[place]) is not None and not -_SAFE <= value <= _SAFE:
                values[place] = str(value)
        row = orjson.dumps(values)
        if key is None:
            name = b"%d" % len(rows)
        else:
            name = BY_KEY.encode() + b",".join(orjson.dumps(values[place]) for place in key)
            times = seen[name] = seen.get(name, 0) + 1
            name = name if times == 1 else b"%b#%d" % (name, times)
        rows.append((name, row))
    return rows


def _values(answer: pa.Table) -> Iterator[list[Any]]:
    for batch in answer.to_batches(_SLICE):
        yield from map(list, zip(*(column.to_pylist() for column in batch.columns), strict=True))


def changed(before: Sequence[Row], after: Sequence[Row]) -> list[tuple[int, bytes, bytes]]:
    """What has to be put where, so that the one becomes the other, once it has as many rows."""
    pairs = zip_longest(before[: len(after)], after)
    return [(place, *new) for place, (old, new) in enumerate(pairs) if old != new]
