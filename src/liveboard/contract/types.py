"""The types of columns: one entry for each, with what every layer has to know of it.

| layer            | what it takes from here                                | what it has for each type itself   |
|------------------|--------------------------------------------------------|------------------------------------|
| configuration    | the names, and what can be a key                       |                                    |
| inspect          | what can be a key                                      |                                    |
| pipeline         | Spark's type                                           | how JSON is read and written       |
| changelog        | how a value is read                                    |                                    |
| server           | DuckDB's and Arrow's type, what is found and compared  | what a filter's value can be       |
| wire             | the name that viewers see                              |                                    |
| page             | nothing: `types.ts` of table-hub is its table          | how it is shown and filtered       |
| client, terminal | the alignment; Arrow's type                            | the value or text that it becomes  |

What a layer has for each type itself is a dictionary; `tests/unit/test_types.py` fails while one of them lacks a type.
The types of libraries are named and not imported, so that the contract needs none of the libraries.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

WireType = Literal["string", "bool", "int32", "int64", "float64", "decimal", "date", "timestamp", "json", "binary"]
Alignment = Literal["left", "right"]

MOST_DIGITS = 38
"""Of a decimal: what Spark, DuckDB and Arrow can hold."""
_DECIMAL = re.compile(r"decimal\s*\(\s*([0-9]{1,3})\s*,\s*([0-9]{1,3})\s*\)")


@dataclass(frozen=True, kw_only=True)
class ColumnType:
    """All that is known of one type."""

    name: str
    """As schemas write it, without parameters."""
    parameters: tuple[int, ...] = ()
    """The 10 and 2 of decimal(10,2): all of its digits, and those behind the point."""
    other_names: tuple[str, ...] = ()
    """What else people may write for it; they are told the right name."""
    wire: WireType
    """As viewers see it."""
    spark: str
    duckdb: str
    """In the server's mirror, where dates and timestamps are texts: their order is the order of time."""
    arrow: str
    """In exported files, as Arrow itself writes the type."""
    read: Callable[[Any], Any]
    """Makes the value of what the JSON of a changelog row holds; never called with null."""
    align: Alignment
    is_number: bool
    """Whether there are a distribution and a mean of it."""
    is_text: bool
    """Whether a filter can ask what it contains."""
    is_ordered: bool
    """Whether a filter can ask what is less and what is greater."""
    not_a_key: str = ""
    """Why it cannot be the key of a join; empty where it can."""


def _as_it_is(found: Any) -> Any:
    return found


_ALL = (
    ColumnType(
        name="string",
        other_names=("text", "varchar"),
        wire="string",
        spark="string",
        duckdb="VARCHAR",
        arrow="string",
        read=_as_it_is,
        align="left",
        is_number=False,
        is_text=True,
        is_ordered=True,
    ),
    ColumnType(
        name="boolean",
        wire="bool",
        spark="boolean",
        duckdb="BOOLEAN",
        arrow="bool",
        read=_as_it_is,
        align="left",
        is_number=False,
        is_text=False,
        is_ordered=False,
    ),
    ColumnType(
        name="int",
        wire="int32",
        spark="int",
        duckdb="BIGINT",
        arrow="int32",
        read=_as_it_is,
        align="right",
        is_number=True,
        is_text=False,
        is_ordered=True,
    ),
    ColumnType(
        name="bigint",
        other_names=("long",),
        wire="int64",
        spark="bigint",
        duckdb="BIGINT",
        arrow="int64",
        read=int,  # a text beyond 2^53
        align="right",
        is_number=True,
        is_text=False,
        is_ordered=True,
    ),
    ColumnType(
        name="double",
        other_names=("float", "real"),
        wire="float64",
        spark="double",
        duckdb="DOUBLE",
        arrow="double",
        read=float,
        align="right",
        is_number=True,
        is_text=False,
        is_ordered=True,
        not_a_key="rounding makes equal doubles differ",
    ),
    ColumnType(
        name="decimal",
        other_names=("numeric", "number"),
        wire="decimal",
        spark="decimal",
        duckdb="DECIMAL",
        arrow="decimal128",
        read=_as_it_is,  # a text of digits, since JavaScript's numbers would round it
        align="right",
        is_number=True,
        is_text=False,
        is_ordered=True,
    ),
    ColumnType(
        name="date",
        wire="date",
        spark="date",
        duckdb="VARCHAR",
        arrow="date32[day]",
        read=_as_it_is,
        align="left",
        is_number=False,
        is_text=False,
        is_ordered=True,
    ),
    ColumnType(
        name="timestamp",
        other_names=("datetime",),
        wire="timestamp",
        spark="timestamp",
        duckdb="VARCHAR",
        arrow="timestamp[us, tz=UTC]",
        read=_as_it_is,
        align="left",
        is_number=False,
        is_text=False,
        is_ordered=True,
        not_a_key="two events hardly ever share a microsecond",
    ),
    ColumnType(
        name="json",
        other_names=("object", "array", "variant", "struct"),
        wire="json",
        spark="string",
        duckdb="VARCHAR",
        arrow="string",
        read=_as_it_is,
        align="left",
        is_number=False,
        is_text=True,
        is_ordered=False,
        not_a_key="the same document can be written in many ways",
    ),
    ColumnType(
        name="binary",
        other_names=("bytes", "blob", "bytea"),
        wire="binary",
        spark="binary",
        duckdb="VARCHAR",
        arrow="binary",
        read=_as_it_is,
        align="left",
        is_number=False,
        is_text=False,
        is_ordered=False,
        not_a_key="bytes are content that nobody can read, and no name of anything",
    ),
)

TYPES = {type_.name: type_ for type_ in _ALL}
_BY_WIRE = {type_.wire: type_ for type_ in _ALL}
_BY_OTHER_NAME = {other: type_.name for type_ in _ALL for other in (type_.wire, *type_.other_names)}


@functools.cache
def column_type(written: str) -> ColumnType:
    """The type that a column has, by what its schema says; a KeyError where there is no such type.

    Of `decimal(10,2)` it is the entry of `decimal` with 10 and 2 put into the names that Spark, DuckDB and Arrow have
    for it. The layers' own tables go by `name`, which has no parameters.
    """
    digits = _DECIMAL.fullmatch(written)
    if not digits:
        return TYPES[written]
    decimal, (precision, scale) = TYPES["decimal"], map(int, digits.groups())
    return replace(
        decimal,
        parameters=(precision, scale),
        spark=f"{decimal.spark}({precision},{scale})",
        duckdb=f"{decimal.duckdb}({precision},{scale})",
        arrow=f"{decimal.arrow}({precision}, {scale})",
    )


def written_type(text: str) -> str:
    """The type that a text names, in any case, as columns write it; a ValueError if it names no type."""
    word = text.strip().lower()
    if digits := _DECIMAL.fullmatch(word):
        precision, scale = map(int, digits.groups())
        if not 1 <= precision <= MOST_DIGITS or scale > precision:
            raise ValueError(f"not so many digits: {text}")
        return f"decimal({precision},{scale})"
    if word not in TYPES or word == "decimal":
        raise ValueError(f"not a type: {text}")
    return word


def wire_column_type(wire: WireType) -> ColumnType:
    """The type that viewers see under this name."""
    return _BY_WIRE[wire]


def meant_type(word: str) -> str | None:
    """The name of the type that people mean by another name of it."""
    return _BY_OTHER_NAME.get(word)
