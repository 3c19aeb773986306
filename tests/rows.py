"""What sorts, filters and searches mean, in plain Python, and the windows that viewers have of them."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from liveboard.contract.changelog import Value
from liveboard.contract.schema import Column

Row = tuple[Value, ...]


def lowered(text: str) -> str:
    """Every character as the first of its lower-case form."""
    return "".join(character.lower()[0] for character in text)


def queried(
    rows: Sequence[tuple[str, Row]], columns: Sequence[Column], sort: Any = None, filter: Any = None, search: Any = None
) -> list[tuple[str, Row]]:
    """The rows, with their keys, that a viewer of the whole table must see."""
    places = {column.name: place for place, column in enumerate(columns)}
    texts = [place for place, column in enumerate(columns) if column.type == "string"]

    def fits(row: Row) -> bool:
        found = not search or any(
            isinstance(row[place], str) and lowered(search) in lowered(str(row[place])) for place in texts
        )
        return found and all(_holds(row[places[term[0]]], *term[1:]) for term in filter or ())

    def compare(one: tuple[str, Row], other: tuple[str, Row]) -> int:
        for name, direction in sort or ():
            a, b = one[1][places[name]], other[1][places[name]]
            if a == b:
                continue
            if a is None or b is None:
                return 1 if a is None else -1
            return (-1 if a < b else 1) * (1 if direction == "asc" else -1)  # type: ignore[operator]
        return 0

    return sorted((row for row in rows if fits(row[1])), key=functools.cmp_to_key(compare))


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
