"""Expressions of aggregates as functions of Python, for one row at a time; the pipeline has the same in Spark.

What cannot be computed is null, as there. Decimals are exact.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import ROUND_HALF_UP, Context, Decimal, DivisionByZero, InvalidOperation
from typing import Any

from liveboard.contract.expressions import Expression
from liveboard.contract.types import column_type

Row = Sequence[Any]
"""A row as its changelog has it, decoded from JSON."""
ValueOf = Callable[[Row], Any]

LONGEST = 2**63
# More digits than any product of two decimals has, so that nothing is rounded.
DECIMALS = Context(prec=120, rounding=ROUND_HALF_UP, traps=[DivisionByZero, InvalidOperation])


def compiled(expression: Expression, places: Mapping[str, int]) -> ValueOf:
    """The value of the expression in a row; `places` says where the columns are."""
    parts = [compiled(each, places) for each in expression.of]
    match expression.operator:
        case "column":
            return _column(places[expression.value], expression)
        case "literal":
            literal = _LITERALS[expression.kind](expression.value)
            return lambda row: literal
        case "null":
            return lambda row: parts[0](row) is None
        case "and":
            return lambda row: _both(parts[0](row), parts[1](row))
        case "or":
            return lambda row: _turned(_both(_turned(parts[0](row)), _turned(parts[1](row))))
        case "not":
            return lambda row: _turned(parts[0](row))
        case "coalesce":
            casts = [_cast(expression, each) for each in expression.of]
            return lambda row: _first_known(row, parts, casts)
        case "=" | "<" | "<=":
            return _known(_compared(expression), parts)
        case "like":
            pattern = re.compile("".join(_LIKE.get(each, re.escape(each)) for each in expression.value), re.DOTALL)
            return _known(lambda text: pattern.fullmatch(text) is not None, parts)
        case "lower":
            return _known(str.lower, parts)
        case "upper":
            return _known(str.upper, parts)
        case "length":
            return _known(len, parts)
    return _known(_computed(expression), parts)


_LIKE = {"%": ".*", "_": "."}
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {"=": operator.eq, "<": operator.lt, "<=": operator.le}


def _column(place: int, expression: Expression) -> ValueOf:
    read = Decimal if expression.kind == "decimal" else column_type(expression.type).read
    return lambda row: None if (found := row[place]) is None else read(found)


def _moment(text: str) -> str:
    found = datetime.fromisoformat(text)
    found = found.astimezone(UTC) if found.tzinfo else found
    return found.replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


# The value of a literal; expressions have none of the other types.
_LITERALS: dict[str, Callable[[str], Any]] = {
    "string": str,
    "boolean": lambda text: text == "true",
    "int": int,
    "bigint": int,
    "decimal": Decimal,
    "date": lambda text: date.fromisoformat(text).isoformat(),
    "timestamp": _moment,
}


def _known(function: Callable[..., Any], parts: Sequence[ValueOf]) -> ValueOf:
    """Null where a part is."""
    if len(parts) == 1:
        (part,) = parts
        return lambda row: None if (found := part(row)) is None else function(found)
    one, other = parts
    return lambda row: (
        None if (first := one(row)) is None or (second := other(row)) is None else function(first, second)
    )


def _both(one: bool | None, other: bool | None) -> bool | None:
    if one is False or other is False:
        return False
    return None if one is None or other is None else True


def _turned(found: bool | None) -> bool | None:
    return None if found is None else not found


def _first_known(row: Row, parts: Sequence[ValueOf], casts: Sequence[Callable[[Any], Any]]) -> Any:
    for part, cast in zip(parts, casts, strict=True):
        if (found := part(row)) is not None:
            return cast(found)
    return None


def _compared(expression: Expression) -> Callable[[Any, Any], bool]:
    compare = _COMPARE[expression.operator]
    if "double" in {each.kind for each in expression.of}:
        return lambda one, other: compare(float(one), float(other))
    return compare


def _computed(expression: Expression) -> Callable[..., Any]:
    """Arithmetic, in the expression's type."""
    function, fitted = _ARITHMETIC[expression.operator], _fitted(expression)
    casts = [_cast(expression, each) for each in expression.of]
    if len(casts) == 1:
        (cast,) = casts
        return lambda found: fitted(function(cast(found)))

    def computed(one: Any, other: Any) -> Any:
        try:
            return fitted(function(casts[0](one), casts[1](other)))
        except (ArithmeticError, ValueError):
            return None

    return computed


def _remainder(one: Any, other: Any) -> Any:
    """With the sign of the first."""
    if isinstance(one, float):
        return math.fmod(one, other)
    if isinstance(one, Decimal):
        return DECIMALS.remainder(one, other)
    rest = abs(one) % abs(other)
    return -rest if one < 0 else rest


def _product(one: Any, other: Any) -> Any:
    return DECIMALS.multiply(one, other) if isinstance(one, Decimal) else one * other


def _sum(one: Any, other: Any) -> Any:
    return DECIMALS.add(one, other) if isinstance(one, Decimal) else one + other


def _difference(one: Any, other: Any) -> Any:
    return DECIMALS.subtract(one, other) if isinstance(one, Decimal) else one - other


_ARITHMETIC: dict[str, Callable[..., Any]] = {
    "+": _sum,
    "-": _difference,
    "*": _product,
    "/": operator.truediv,
    "%": _remainder,
    "negative": lambda found: 0 - found if not isinstance(found, Decimal) else found.copy_negate(),
    "abs": lambda found: found.copy_abs() if isinstance(found, Decimal) else abs(found),
}


def _cast(expression: Expression, part: Expression) -> Callable[[Any], Any]:
    """To the type in which the expression is computed."""
    if expression.kind == "double":
        return float
    if expression.kind != "decimal":
        return lambda found: found
    fitted = _fitted(expression) if expression.operator == "coalesce" else None
    return lambda found: fitted(Decimal(found)) if fitted else Decimal(found)


def _fitted(expression: Expression) -> Callable[[Any], Any]:
    """Null where the value is too large for the expression's type."""
    if expression.kind == "double":
        return lambda found: found if math.isfinite(found) else None
    if expression.kind != "decimal":
        return lambda found: found if -LONGEST <= found < LONGEST else None
    digits, scale = column_type(expression.type).parameters
    smallest = Decimal(1).scaleb(-scale)

    def fitted(found: Decimal) -> Decimal | None:
        exact = found.quantize(smallest, context=DECIMALS)
        return exact if len(exact.as_tuple().digits) <= digits else None

    return fitted
