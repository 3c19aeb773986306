"""Conditions as a function of Python, for one row at a time; the server has the same in SQL, for all rows at once."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from liveboard.contract.filters import Condition, read_filter
from liveboard.contract.schema import Column

Row = Sequence[Any]
"""A row as its changelog has it, decoded from JSON."""
Predicate = Callable[[Row], bool]

_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def predicate(columns: Sequence[Column], when: Sequence[Sequence[Any]]) -> Predicate:
    """Whether a row fulfils all conditions; a FrameError where they do not fit a table with these columns."""
    tests = [_test(columns[condition.place], condition) for condition in read_filter(columns, when)]
    if len(tests) == 1:
        return tests[0]
    return lambda row: all(test(row) for test in tests)


def without_case(text: str) -> str:
    """Every character as the first one of its lower-case form."""
    return text.lower() if text.isascii() else "".join([character.lower()[0] for character in text])


def _test(column: Column, condition: Condition) -> Predicate:
    place, values = condition.place, condition.values
    match condition.operator:
        case "is null":
            return lambda row: row[place] is None
        case "is not null":
            return lambda row: row[place] is not None
    holds = _holds(condition)
    read = Decimal if column.kind.name == "decimal" else column.kind.read
    if values and isinstance(values[0], str):
        return lambda row: (found := row[place]) is not None and holds(found)
    return lambda row: (found := row[place]) is not None and holds(read(found))


def _holds(condition: Condition) -> Callable[[Any], bool]:
    values = condition.values
    match condition.operator:
        case "contains":
            sought = without_case(values[0])
            return lambda found: sought in without_case(found)
        case "starts with":
            sought = without_case(values[0])
            return lambda found: without_case(found).startswith(sought)
        case "in":
            return lambda found: found in values
        case "between":
            low, high = values
            return lambda found: bool(low <= found <= high)
        case word:
            compare, value = _COMPARE[word], values[0]
            return lambda found: compare(found, value)
