"""What a viewer wants to see of a table, checked against its columns, and its SQL for the mirror.

The contract's module `frames` says what filters, sorts and searches mean.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Context, Decimal
from typing import Any

from liveboard.config import LimitSettings
from liveboard.contract.frames import Code, FrameError, Order, SortKey
from liveboard.contract.schema import Column
from liveboard.contract.types import MOST_DIGITS

SEPARATOR = "\x1f"
"""What is between the texts of a row where they are kept as one."""

_COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
_OPERATORS = (*_COMPARISONS, "in", "between", "contains", "starts with", "is null", "is not null")
_TEXT_FUNCTIONS = {"contains": "contains", "starts with": "starts_with"}
_WITHOUT_VALUE = ("is null", "is not null")
_SHOWN_NUMBER = re.compile(r"-?[0-9][0-9,]*(\.[0-9]*)?")
_INT64 = range(-(2**63), 2**63)
_LIMITS = LimitSettings()
_NUMBER = re.compile(r"[+-]?([0-9]{1,60}(\.[0-9]{0,60})?|\.[0-9]{1,60})([eE][+-]?[0-9]{1,3})?")
_EVERY_DIGIT = Context(prec=2 * MOST_DIGITS)


@dataclass(frozen=True)
class Query:
    """A sort, a filter and a search in SQL, equal if they mean the same; with none of them it is the natural order."""

    where: str = ""
    order: str = ""
    parameters: tuple[Any, ...] = ()
    newest: bool = False
    """Whether the table's own order is meant from its end."""

    @property
    def is_natural(self) -> bool:
        """Whether all rows are wanted in the table's own order, from either end."""
        return not self.where and not self.order

    @property
    def order_by(self) -> str:
        """The whole order."""
        return f"{self.order}pos{' DESC' if self.newest else ''}"

    @property
    def sorted_by(self) -> list[str]:
        """The columns that the order is made of."""
        return [term.split()[0] for term in self.order.split(", ")[:-1]]


NATURAL = Query()


def compile_query(
    columns: Sequence[Column],
    sort: Sequence[SortKey] | None,
    filter: Sequence[Sequence[Any]] | None,
    search: str | None,
    limits: LimitSettings = _LIMITS,
    order: Order = "arrival",
) -> Query:
    """The query; otherwise a FrameError `bad_filter` that says what was expected and what was found."""
    places = {column.name: number for number, column in enumerate(columns)}
    conditions: list[str] = []
    parameters: list[Any] = []
    if len(filter or ()) > limits.conditions:
        raise _bad(f"expected up to {limits.conditions} conditions, found {len(filter or ())}")
    _check_length("search", search, limits)
    for term in filter or ():
        sql, values = _condition(columns, places, term, limits)
        conditions.append(sql)
        parameters += values
    if search:
        sought = _sought(search)
        where = ["folded"] if SEPARATOR not in search else [f"lower({text})" for text in searched(columns)]
        finds = [f"contains({text}, lower(?))" for text in where for _ in sought]
        conditions.append(f"({' OR '.join(finds)})")
        parameters += sought * len(where)
    directions: dict[int, str] = {}
    for name, direction in sort or ():
        # A column that is named again cannot change the order any more.
        directions.setdefault(_place(places, name), direction)
    return Query(
        " AND ".join(conditions),
        "".join(f"c{number} {direction} NULLS LAST, " for number, direction in directions.items()),
        tuple(parameters),
        order == "newest",
    )


def searched(columns: Sequence[Column]) -> list[str]:
    """The texts that a search looks into, as SQL."""
    return [_SEARCHED[column.kind.name].format(f"c{number}") for number, column in enumerate(columns)]


def _sought(search: str) -> list[str]:
    """What is looked for: the text, and if it is a number as people write it, the same as it is kept."""
    if not _SHOWN_NUMBER.fullmatch(search):
        return [search]
    digits = search.replace(",", "")
    return list(dict.fromkeys([search, digits.rstrip("0") if "." in digits else digits]))


def _condition(
    columns: Sequence[Column], places: dict[str, int], term: Sequence[Any], limits: LimitSettings
) -> tuple[str, list[Any]]:
    if not 2 <= len(term) <= 3 or not all(isinstance(word, str) for word in term[:2]):
        raise _bad(f"expected a condition [column, operator, value], found {_shown(list(term))}")
    name, operator = term[:2]
    number = _place(places, name)
    column, sql = columns[number], f"c{number}"
    if operator not in _OPERATORS:
        raise _bad(f"expected an operator ({', '.join(_OPERATORS)}), found {_shown(operator)}")
    if operator in _WITHOUT_VALUE:
        if len(term) == 3 and term[2] is not None:
            raise _bad(f'expected no value for "{name}" {operator}, found {_shown(term[2])}')
        return f"{sql} {operator.upper()}", []
    if len(term) == 2:
        raise _bad(f'expected a value for "{name}" {operator}, found none')
    value = term[2]
    for text in value if isinstance(value, list) else [value]:
        _check_length(f'"{name}" {operator}', text, limits)
    if operator in _TEXT_FUNCTIONS:
        if not column.kind.is_text:
            raise _bad(f'expected a string column for "{operator}", found "{name}" of type {column.kind.wire}')
        return f"{_TEXT_FUNCTIONS[operator]}(lower({sql}), lower(?))", [_value(column, value)]
    if not column.kind.is_ordered and operator not in ("=", "!=", "in"):
        raise _bad(f'expected =, !=, in or is null for "{name}" of type {column.kind.wire}, found {_shown(operator)}')
    if operator in ("in", "between"):
        if not isinstance(value, list):
            raise _bad(f'expected a list of values for "{name}" {operator}, found {_shown(value)}')
        if len(value) > limits.condition_values or (operator == "between" and len(value) != 2):
            wanted = "two values" if operator == "between" else f"up to {limits.condition_values} values"
            raise _bad(f'expected {wanted} for "{name}" {operator}, found {len(value)}')
        values = [_value(column, item) for item in value]
        if operator == "between":
            return f"{sql} BETWEEN ? AND ?", values
        return (f"{sql} IN ({', '.join('?' * len(values))})" if values else "FALSE"), values
    return f"{sql} {operator} ?", [_value(column, value)]


def _check_length(what: str, text: object, limits: LimitSettings) -> None:
    if isinstance(text, str) and len(text) > limits.text_length:
        raise _bad(f"expected a text of up to {limits.text_length} characters for {what}, found {len(text)}")


def _place(places: dict[str, int], name: str) -> int:
    if name not in places:
        raise _bad(f"expected a column ({', '.join(places)}), found {_shown(name)}")
    return places[name]


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


# What a search looks into, by the type of the column.
_SEARCHED = {
    "string": "{}",
    "boolean": "CAST({} AS VARCHAR)",
    "int": "CAST({} AS VARCHAR)",
    "bigint": "CAST({} AS VARCHAR)",
    "double": "CAST({} AS VARCHAR)",
    "decimal": "CAST({} AS VARCHAR)",
    "json": "{}",
    "binary": "{}",
    "date": "{}",
    "timestamp": "replace(replace({}, 'T', ' '), 'Z', '')",
}


def _shown(value: Any) -> str:
    text = repr(value) if not isinstance(value, str) else f'"{value}"'
    return text if len(text) <= 100 else f"{text[:100]}…"


def _bad(message: str) -> FrameError:
    return FrameError(Code.BAD_FILTER, message)
