"""The conditions of filters: what may be written, checked against the columns of a table.

The module `frames` says what they mean. The server makes SQL of them, alerts make Python of them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Context, Decimal
from typing import Any

from liveboard.contract.frames import Code, FrameError
from liveboard.contract.schema import Column
from liveboard.contract.types import MOST_DIGITS

_COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
_TEXT_OPERATORS = ("contains", "starts with")
_WITHOUT_VALUE = ("is null", "is not null")
OPERATORS = (*_COMPARISONS, "in", "between", *_TEXT_OPERATORS, *_WITHOUT_VALUE)
_INT64 = range(-(2**63), 2**63)
_NUMBER = re.compile(r"[+-]?([0-9]{1,60}(\.[0-9]{0,60})?|\.[0-9]{1,60})([eE][+-]?[0-9]{1,3})?")
_EVERY_DIGIT = Context(prec=2 * MOST_DIGITS)


@dataclass(frozen=True)
class Condition:
    """A condition on the column at a place; its values are as the table has them, none for `is null`."""

    place: int
    operator: str
    values: tuple[Any, ...]


def read_filter(
    columns: Sequence[Column],
    terms: Sequence[Sequence[Any]],
    most: int = 100,
    most_values: int = 1_000,
    longest_text: int = 4_000,
) -> list[Condition]:
    """The conditions of a filter; otherwise a FrameError that says what was expected and what was found."""
    if len(terms) > most:
        raise _bad(f"expected up to {most} conditions, found {len(terms)}")
    places = {column.name: number for number, column in enumerate(columns)}
    return [_condition(columns, places, term, most_values, longest_text) for term in terms]


def check_length(what: str, text: object, longest: int) -> None:
    """A FrameError if a text is longer than allowed."""
    if isinstance(text, str) and len(text) > longest:
        raise _bad(f"expected a text of up to {longest} characters for {what}, found {len(text)}")


def column_place(places: Mapping[str, int], name: str) -> int:
    """Where the column of this name is; a FrameError names those that there are."""
    if name not in places:
        raise _bad(f"expected a column ({', '.join(places)}), found {_shown(name)}")
    return places[name]


def _condition(
    columns: Sequence[Column], places: Mapping[str, int], term: Sequence[Any], most_values: int, longest_text: int
) -> Condition:
    if not 2 <= len(term) <= 3 or not all(isinstance(word, str) for word in term[:2]):
        raise _bad(f"expected a condition [column, operator, value], found {_shown(list(term))}")
    name, operator = term[:2]
    number = column_place(places, name)
    column = columns[number]
    if operator not in OPERATORS:
        raise _bad(f"expected an operator ({', '.join(OPERATORS)}), found {_shown(operator)}")
    if operator in _WITHOUT_VALUE:
        if len(term) == 3 and term[2] is not None:
            raise _bad(f'expected no value for "{name}" {operator}, found {_shown(term[2])}')
        return Condition(number, operator, ())
    if len(term) == 2:
        raise _bad(f'expected a value for "{name}" {operator}, found none')
    value = term[2]
    for text in value if isinstance(value, list) else [value]:
        check_length(f'"{name}" {operator}', text, longest_text)
    if operator in _TEXT_OPERATORS:
        if not column.kind.is_text:
            raise _bad(f'expected a string column for "{operator}", found "{name}" of type {column.kind.wire}')
    elif not column.kind.is_ordered and operator not in ("=", "!=", "in"):
        raise _bad(f'expected =, !=, in or is null for "{name}" of type {column.kind.wire}, found {_shown(operator)}')
    if operator not in ("in", "between"):
        return Condition(number, operator, (_value(column, value),))
    if not isinstance(value, list):
        raise _bad(f'expected a list of values for "{name}" {operator}, found {_shown(value)}')
    if len(value) > most_values or (operator == "between" and len(value) != 2):
        wanted = "two values" if operator == "between" else f"up to {most_values} values"
        raise _bad(f'expected {wanted} for "{name}" {operator}, found {len(value)}')
    return Condition(number, operator, tuple(_value(column, item) for item in value))


def _value(column: Column, value: Any) -> Any:
    expected, convert = _VALUES[column.kind.name]
    try:
        found = convert(value)
        return _comparable(found, *column.kind.parameters) if isinstance(found, Decimal) else found
    except (ValueError, OverflowError):
        raise _bad(f'expected {expected} for "{column.name}", found {_shown(value)}') from None


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("not a text")
    return value


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("not a boolean")
    return value


def _integer(value: Any) -> int:
    number = int(value) if isinstance(value, str) and len(value) <= 20 else value
    if not isinstance(number, int) or isinstance(number, bool) or number not in _INT64:
        raise ValueError("not a 64-bit integer")
    return number


def _double(value: Any) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(number := float(value)):
        raise ValueError("not a finite number")
    return number


def _decimal(value: Any) -> Decimal:
    is_number = isinstance(value, int | float | str) and not isinstance(value, bool) and _NUMBER.fullmatch(str(value))
    if not is_number:
        raise ValueError("not a number")
    return Decimal(str(value))


def _comparable(number: Decimal, precision: int, scale: int) -> Decimal:
    """A number that compares with those of the type as this one does, and that DuckDB can hold beside them."""
    beyond = Decimal(10) ** (precision - scale)
    within = max(-beyond, min(beyond, number))
    digits, exponent = within.as_tuple().digits, int(within.as_tuple().exponent)
    behind = max(scale, -exponent)
    if max(precision - scale, len(digits) + exponent) + behind > MOST_DIGITS:
        raise ValueError("more digits than can be compared")
    return within.quantize(Decimal(1).scaleb(-behind), context=_EVERY_DIGIT)


def _date(value: Any) -> str:
    return date.fromisoformat(_text(value)).isoformat()


def _timestamp(value: Any) -> str:
    time = datetime.fromisoformat(_text(value))
    time = time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    return time.replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


# What a filter's value may be, by the type of its column.
_VALUES: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "string": ("a text", _text),
    "boolean": ("true or false", _boolean),
    "int": ("an integer", _integer),
    "bigint": ("a 64-bit integer, as a number or a text of digits", _integer),
    "double": ("a number", _double),
    "decimal": ("a number, also as a text of digits", _decimal),
    "date": ('a date such as "2026-01-31"', _date),
    "timestamp": ('a time such as "2026-01-31T09:30:00Z"', _timestamp),
    "json": ("a text", _text),
    "binary": ("a text in base64", _text),
}


def _shown(value: Any) -> str:
    text = repr(value) if not isinstance(value, str) else f'"{value}"'
    return text if len(text) <= 100 else f"{text[:100]}…"


def _bad(message: str) -> FrameError:
    return FrameError(Code.BAD_FILTER, message)
