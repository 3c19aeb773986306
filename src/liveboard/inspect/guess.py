"""The type of a column, by all values that were seen of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

# Broken records are rejected: among many values, a few of another type do not make the type.
_ENOUGH, _FEW = 20, 0.05
_LONGEST_DIGITS = 38
_USUAL_DIGITS = 18
_BIGINT = range(-(2**63), 2**63)
_LARGEST_DOUBLE = Decimal("1.7e308")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_TIMESTAMP = re.compile(
    r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}(\.\d{1,6})?(Z|[+-]\d{2}:\d{2})?", re.ASCII
)  # as pipeline/fields.py takes it
_YEARS = range(1600, 9000)
_FARTHEST_ZONE = timedelta(hours=18)
_MONEY = re.compile(r"-?(0|[1-9]\d*)\.(\d{2,9})", re.ASCII)
_SINCE, _UNTIL = 946_684_800, 4_102_444_800  # the years 2000 to 2100 in seconds
_UNITS = {"s": 1, "ms": 1_000, "us": 1_000_000}
_TIME_WORD = re.compile(
    r"time|date|timestamp|ts|at|on|when|created|updated|modified|deleted|changed|expires|expiry|since|until|born|"
    r"seen|epoch|ms|millis"
)
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


@dataclass(frozen=True)
class Guess:
    """A column's type as the configuration writes it, with the unit of times that are numbers."""

    type: str
    unit: str = ""
    remark: str = ""
    kind: str = ""
    """What its values are in JSON; empty where they may be anything."""

    def has(self, value: Any) -> bool:
        """Whether the value is of the type, among values from which it was guessed."""
        if self.kind and kind_of(value) != self.kind:
            return False
        return not (self.type == "bigint" and value not in _BIGINT) and not (
            self.type == "double" and abs(value) > _LARGEST_DOUBLE
        )


def guess(name: str, values: Sequence[Any]) -> Guess:
    """The narrowest type that these values have; a few strays among many do not count.

    None of the values is null, and there is one at least.
    """
    groups: dict[str, list[Any]] = {}
    for value in values:
        groups.setdefault(kind_of(value), []).append(value)
    kind, most = max(groups.items(), key=lambda group: len(group[1]))
    strays = len(values) - len(most)
    if not _are_few(strays, len(values)):
        return Guess("json", remark=f"mixed: {' and '.join(sorted(f'{kind}s' for kind in groups))}")
    found = _BY_KIND[kind](name, most)
    return found if found.type == "json" else replace(found, kind=kind)


def kind_of(value: Any) -> str:
    """What JSON calls the value."""
    return _KINDS.get(type(value), "document")


def _are_few(strays: int, values: int) -> bool:
    return strays == 0 or (values >= _ENOUGH and strays <= _FEW * values)


def _of_numbers(name: str, values: Sequence[Any]) -> Guess:
    integers = [value for value in values if isinstance(value, int)]
    if len(integers) == len(values):
        return _of_integers(name, integers)
    if _are_few(sum(abs(value) > _LARGEST_DOUBLE for value in values), len(values)):
        return Guess("double")
    return Guess("json", remark="numbers that no double can hold")


def _of_integers(name: str, values: Sequence[int]) -> Guess:
    if suggests_time(name):
        for unit, factor in _UNITS.items():
            if all(_SINCE * factor <= value < _UNTIL * factor for value in values):
                return Guess("timestamp", unit)
    if _are_few(sum(value not in _BIGINT for value in values), len(values)):
        return Guess("bigint")
    if max(map(abs, values)) < 10**_LONGEST_DIGITS:
        return Guess(f"decimal({_LONGEST_DIGITS},0)", remark="beyond 64 bits")
    return Guess("json", remark=f"numbers of more than {_LONGEST_DIGITS} digits")


def _of_texts(name: str, values: Sequence[str]) -> Guess:
    for type_, fits in _TEXTS.items():
        if all(map(fits, values)):
            return Guess(type_)
    numbers = [found for value in values if (found := _MONEY.fullmatch(value))]
    scales = {len(found[2]) for found in numbers}
    if len(numbers) == len(values) and len(scales) == 1:
        scale = scales.pop()
        digits = max(len(found[1]) for found in numbers) + scale
        for precision in (_USUAL_DIGITS, _LONGEST_DIGITS):
            if digits <= precision:
                return Guess(f"decimal({precision},{scale})")
    return Guess("string")


def _is_date(text: str) -> bool:
    return _DATE.fullmatch(text) is not None and _is_time(text, lambda value: date.fromisoformat(value).year)


def _is_timestamp(text: str) -> bool:
    return _TIMESTAMP.fullmatch(text) is not None and _is_time(text, _year_of)


def _year_of(text: str) -> int:
    found = datetime.fromisoformat(text)
    if abs(found.utcoffset() or timedelta()) > _FARTHEST_ZONE:
        raise ValueError("no such time zone")
    return found.year


def _is_time(text: str, year_of: Callable[[str], int]) -> bool:
    try:
        return year_of(text) in _YEARS
    except ValueError:
        return False


_TEXTS: dict[str, Callable[[str], bool]] = {"date": _is_date, "timestamp": _is_timestamp}


_KINDS = {bool: "boolean", str: "text", int: "number", Decimal: "number"}
_BY_KIND: dict[str, Callable[[str, Sequence[Any]], Guess]] = {
    "boolean": lambda name, values: Guess("boolean"),
    "text": _of_texts,
    "number": _of_numbers,
    "document": lambda name, values: Guess("json"),
}


def suggests_time(name: str) -> bool:
    """Whether a field of this name may hold a time: its last word says so, as in `createdAt` or `event_time_ms`."""
    return any(_TIME_WORD.fullmatch(word) for word in words(name)[-2:]) or name.lower().endswith(
        ("time", "date", "timestamp")
    )


def words(name: str) -> list[str]:
    """The words of a name such as `orderId` or `order_id`, in lower case."""
    return [word.lower() for word in _WORDS.findall(name)]
