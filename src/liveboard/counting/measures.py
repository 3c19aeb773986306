"""What a group knows of one measure: values come and go, in any order, and the answer depends on those that are there.

Sums are integers, also those of doubles: a double is a whole number of the smallest doubles. So taking a value out
again leaves exactly what was there before.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Protocol

from liveboard.contract.aggregates import Measure
from liveboard.contract.types import column_type
from liveboard.counting.values import DECIMALS, LONGEST

# The smallest double is 2 to the power of minus this.
_FINEST = 1074
_LARGEST_EXACT = 2**53
_SPARE = 64


class MeasureState(Protocol):
    """What is kept of the values; nulls are never told."""

    def add(self, value: Any) -> None:
        """A value comes."""

    def remove(self, value: Any) -> None:
        """A value that has come goes."""

    def answer(self) -> Any:
        """What it comes to, as the JSON of a row; null where there is no value."""


class Count:
    """How many there are."""

    def __init__(self) -> None:
        self._count = 0

    def add(self, value: Any) -> None:
        """A value comes."""
        self._count += 1

    def remove(self, value: Any) -> None:
        """A value that has come goes."""
        self._count -= 1

    def answer(self) -> int:
        """The number of them."""
        return self._count


class Sum:
    """What they add up to, or their mean."""

    def __init__(self, exact: Callable[[Any], int], shown: Callable[[int, int], Any]) -> None:
        self._exact = exact
        self._shown = shown
        self._count = 0
        self._total = 0

    def add(self, value: Any) -> None:
        """A value comes."""
        self._count += 1
        self._total += self._exact(value)

    def remove(self, value: Any) -> None:
        """A value that has come goes."""
        self._count -= 1
        self._total -= self._exact(value)

    def answer(self) -> Any:
        """Of the measure's type; null also where it is too large for that."""
        try:
            return self._shown(self._total, self._count) if self._count else None
        except OverflowError:
            return None


class Extreme:
    """The least or the greatest.

    The heap has each value that is there, and some that have gone; it is made when it is first asked for, so that many
    values at the beginning cost little.
    """

    def __init__(self, ordered: Callable[[Any], Any], shown: Callable[[Any], Any]) -> None:
        self._ordered = ordered
        self._shown = shown
        self._counts: dict[Any, int] = {}
        self._heap: list[Any] | None = None

    def add(self, value: Any) -> None:
        """A value comes."""
        count = self._counts.get(value, 0)
        self._counts[value] = count + 1
        if self._heap is not None and not count:
            heapq.heappush(self._heap, self._ordered(value))

    def remove(self, value: Any) -> None:
        """A value that has come goes."""
        count = self._counts[value] - 1
        if count:
            self._counts[value] = count
        else:
            del self._counts[value]

    def answer(self) -> Any:
        """The value itself."""
        if not self._counts:
            self._heap = None
            return None
        if self._heap is None or len(self._heap) > 2 * len(self._counts) + _SPARE:
            self._heap = list(map(self._ordered, self._counts))
            heapq.heapify(self._heap)
        while self._heap[0].value not in self._counts:
            heapq.heappop(self._heap)
        return self._shown(self._heap[0].value)


class Least:
    """The order of a heap that has the least value on top."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __lt__(self, other: Least) -> bool:
        return bool(self.value < other.value)


class Greatest(Least):
    """The order of a heap that has the greatest value on top."""

    __slots__ = ()

    def __lt__(self, other: Least) -> bool:
        return bool(self.value > other.value)


def kept(measure: Measure) -> MeasureState:
    """What has to be kept of the values for the measure."""
    if measure.function == "count" or measure.of is None:
        return Count()
    if measure.function in ("min", "max"):
        return Extreme(Least if measure.function == "min" else Greatest, _SHOWN[measure.of.kind])
    kind = column_type(measure.of.type)
    scale = kind.parameters[1] if kind.parameters else 0
    exact = _EXACT[kind.name](scale)
    unit = 2**_FINEST if kind.name == "double" else 10**scale
    if measure.function == "avg":
        return Sum(exact, lambda total, count: total / unit / count)
    return Sum(exact, _sum_of(measure.type, unit))


def _sum_of(type_: str, unit: int) -> Callable[[int, int], Any]:
    kind = column_type(type_)
    if kind.name == "double":
        return lambda total, _: total / unit
    if kind.name == "decimal":
        digits, scale = kind.parameters
        return lambda total, _: _digits(total, scale) if abs(total) < 10**digits else None
    return lambda total, _: _integer(total) if -LONGEST <= total < LONGEST else None


def _fine(value: float) -> int:
    number, parts = value.as_integer_ratio()
    return number << (_FINEST + 1 - parts.bit_length())


def _unscaled(value: Decimal, scale: int) -> int:
    return int(value.scaleb(scale, context=DECIMALS))


def _digits(unscaled: int, scale: int) -> str:
    return f"{Decimal(unscaled).scaleb(-scale, context=DECIMALS):f}"


def _integer(value: int) -> int | str:
    """Beyond what JavaScript holds, a text."""
    return value if -_LARGEST_EXACT <= value <= _LARGEST_EXACT else str(value)


# Numbers as integers, which add up without rounding; a decimal's scale comes first.
_EXACT: dict[str, Callable[[int], Callable[[Any], int]]] = {
    "int": lambda _: int,
    "bigint": lambda _: int,
    "double": lambda _: _fine,
    "decimal": lambda scale: lambda found: _unscaled(found, scale),
}
# The least or greatest value as the changelog has it.
_SHOWN: dict[str, Callable[[Any], Any]] = {
    "string": str,
    "int": int,
    "bigint": _integer,
    "double": float,
    "decimal": lambda found: f"{found:f}",
    "date": str,
    "timestamp": str,
}
