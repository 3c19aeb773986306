"""What sorts, filters and searches mean, in plain Python, and the windows that viewers have of them."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import duckdb

from liveboard.contract.changelog import Value
from liveboard.contract.schema import Column

Row = tuple[Value, ...]


def lowered(text: str) -> str:
    """Every character as the first of its lower-case form."""
    return "".join(character.lower()[0] for character in text)


def searched(value: Value, type: str) -> str:
    """The text of a value that a search finds."""
    match value:
        case None:
            return ""
        case bool():
            return str(value).lower()
        case float():
            # How a double is written is DuckDB's affair.
            return str(duckdb.execute("SELECT CAST(CAST(? AS DOUBLE) AS VARCHAR)", [value]).fetchall()[0][0])
    return str(value).replace("T", " ").replace("Z", "") if type == "timestamp" else str(value)


def sought(search: str) -> set[str]:
    """A number is also found by its digits alone."""
    if not re.fullmatch(r"-?[0-9][0-9,]*(\.[0-9]*)?", search):
        return {search}
    digits = search.replace(",", "")
    return {search, digits.rstrip("0") if "." in digits else digits}


def queried(
    rows: Sequence[tuple[str, Row]],
    columns: Sequence[Column],
    sort: Any = None,
    filter: Any = None,
    search: Any = None,
    order: str = "arrival",
) -> list[tuple[str, Row]]:
    """The rows, with their keys, that a viewer of the whole table must see."""
    places = {column.name: place for place, column in enumerate(columns)}
    exact = {column.name for column in columns if column.type.startswith("decimal")}

    def fits(row: Row) -> bool:
        found = not search or any(
            lowered(wanted) in lowered(text)
            for column, value in zip(columns, row, strict=True)
            for text in [searched(value, column.type)]
            for wanted in sought(search)
        )
        return found and all(holds(row, *term) for term in filter or ())

    def holds(row: Row, name: str, operator: str, wanted: Any = None) -> bool:
        return _holds(cell(row, name), operator, _number(wanted) if name in exact else wanted)

    def cell(row: Row, name: str) -> Any:
        return _number(row[places[name]]) if name in exact else row[places[name]]

    def compare(one: tuple[str, Row], other: tuple[str, Row]) -> int:
        for name, direction in sort or ():
            a, b = cell(one[1], name), cell(other[1], name)
            if a == b:
                continue
            if a is None or b is None:
                return 1 if a is None else -1
            return (-1 if a < b else 1) * (1 if direction == "asc" else -1)
        return 0

    ordered = rows if order == "arrival" else rows[::-1]
    return sorted((row for row in ordered if fits(row[1])), key=functools.cmp_to_key(compare))


def _number(found: Any) -> Any:
    """Decimals are texts, and what they are compared with are numbers or texts."""
    if isinstance(found, list):
        return [_number(each) for each in found]
    return None if found is None else Decimal(str(found))


def _holds(value: Any, operator: str, wanted: Any = None) -> bool:
    if operator in ("is null", "is not null"):
        return (value is None) == (operator == "is null")
    if value is None:
        return False
    match operator:
        case "=":
            return bool(value == wanted)
        case "!=":
            return bool(value != wanted)
        case "<":
            return bool(value < wanted)
        case "<=":
            return bool(value <= wanted)
        case ">":
            return bool(value > wanted)
        case ">=":
            return bool(value >= wanted)
        case "in":
            return value in wanted
        case "between":
            return bool(wanted[0] <= value <= wanted[1])
        case "contains":
            return lowered(wanted) in lowered(value)
        case "starts with":
            return lowered(value).startswith(lowered(wanted))
    raise ValueError(operator)
