"""Expressions of aggregates as columns of Spark: none of them ever fails, what cannot be computed is null."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column as Expr
from pyspark.sql import functions as F

from liveboard.contract.expressions import Expression
from liveboard.contract.types import column_type

_LARGEST_DOUBLE = 1.7976931348623157e308

_ARITHMETIC: dict[str, Callable[[Expr, Expr], Expr]] = {
    "+": F.try_add,
    "-": F.try_subtract,
    "*": F.try_multiply,
    "/": F.try_divide,
    "%": F.try_mod,
}
_OTHERS: dict[str, Callable[..., Expr]] = {
    "and": lambda one, other: one & other,
    "or": lambda one, other: one | other,
    "not": lambda found: ~found,
    "=": lambda one, other: one == other,
    "<": lambda one, other: one < other,
    "<=": lambda one, other: one <= other,
    "null": lambda found: found.isNull(),
    "coalesce": F.coalesce,
    "lower": F.lower,
    "upper": F.upper,
    "length": F.length,
}


def compiled(expression: Expression, column: Callable[[str], Expr]) -> Expr:
    """The value of the expression, of its type; `column` gives those that it names."""
    parts = [compiled(each, column) for each in expression.of]
    type_ = column_type(expression.type).spark
    match expression.operator:
        case "column":
            return column(expression.value)
        case "literal":
            return F.lit(expression.value).cast(type_)
        case "like":
            return parts[0].like(expression.value)
        case "negative":
            return _finite(F.try_subtract(F.lit(0).cast(type_), parts[0].cast(type_)), expression)
        case "abs":
            found = parts[0].cast(type_)
            return F.when(found < 0, F.try_subtract(F.lit(0).cast(type_), found)).otherwise(found).try_cast(type_)
        case sign if sign in _ARITHMETIC:
            # Decimals keep their own digits, so that Spark knows those of what comes out.
            operands = parts if expression.kind == "decimal" else [part.cast(type_) for part in parts]
            return _finite(_ARITHMETIC[sign](*operands), expression)
        case "coalesce":
            return F.coalesce(*[part.cast(type_) for part in parts])
        case other:
            return _OTHERS[other](*parts)


def _finite(found: Expr, expression: Expression) -> Expr:
    """Null beyond the type's range; infinities are no JSON."""
    if expression.type == "double":
        return F.when(found.between(-_LARGEST_DOUBLE, _LARGEST_DOUBLE), found)
    return found.try_cast(column_type(expression.type).spark)
