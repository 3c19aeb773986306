"""What the measures of an aggregate mean, and the columns of its table."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from liveboard.contract.board import Aggregate, Source
from liveboard.contract.expressions import Expression, ExpressionError, parse_expression
from liveboard.contract.schema import TS, Column
from liveboard.contract.types import MOST_DIGITS, column_type

Function = Literal["count", "sum", "avg", "min", "max"]
FUNCTIONS: tuple[Function, ...] = get_args(Function)
WINDOW_COLUMNS = (Column("window_start", "timestamp"), Column("window_end", "timestamp"))
_CALL = re.compile(r"\s*([A-Za-z_]\w*)\s*\((.*)\)\s*", re.DOTALL)
_EXAMPLES = "count(*), sum(balance), avg(balance), min(balance) or max(ts)"
# How many more digits a sum has than what is summed, as in Spark.
_CARRIED_DIGITS = 10


@dataclass(frozen=True)
class Measure:
    """One column of an aggregate."""

    name: str
    function: Function
    of: Expression | None
    """None: of whole records, as in count(*)."""
    type: str


def columns_of(source: Source) -> dict[str, str]:
    """What conditions and measures can name, with the types."""
    return {**{column.name: column.type for column in source.columns}, TS.name: TS.type}


def parse_measure(name: str, text: str, columns: Mapping[str, str]) -> Measure:
    """The measure that a text such as `sum(balance)` means; an ExpressionError says what is wrong."""
    call = _CALL.fullmatch(text)
    function = next((each for each in FUNCTIONS if call and call[1].lower() == each), None)
    if call is None or function is None:
        raise ExpressionError(f'expected a measure such as {_EXAMPLES}, found "{text.strip()[:100]}"')
    if call[2].strip() == "*":
        if function != "count":
            raise ExpressionError(f"expected a column in {function}(…), found *")
        return Measure(name, "count", None, "bigint")
    of = parse_expression(call[2], columns)
    return Measure(name, function, of, _type(function, of))


def measures_of(aggregate: Aggregate, source: Source) -> tuple[Measure, ...]:
    """All its measures."""
    columns = columns_of(source)
    return tuple(parse_measure(name, text, columns) for name, text in aggregate.measures.items())


def group_columns(aggregate: Aggregate, source: Source) -> tuple[Column, ...]:
    """The columns that tell its rows apart."""
    by_name = {column.name: column for column in source.columns}
    return (*[by_name[name].of_table for name in aggregate.by], *(WINDOW_COLUMNS if aggregate.window else ()))


def aggregate_columns(aggregate: Aggregate, source: Source) -> tuple[Column, ...]:
    """The columns of its table: what tells its rows apart, its measures, and the newest record's time."""
    measures = [Column(measure.name, measure.type) for measure in measures_of(aggregate, source)]
    return (*group_columns(aggregate, source), *measures, TS)


def _type(function: Function, of: Expression) -> str:
    kind = column_type(of.type)
    match function:
        case "count":
            return "bigint"
        case "min" | "max":
            if not kind.is_ordered:
                raise ExpressionError(f"expected something that has an order in {function}(…), found a {of.type}")
            return of.type
    if not kind.is_number:
        raise ExpressionError(f"expected a number in {function}(…), found a {of.type}")
    if function == "avg" or of.type == "double":
        return "double"
    if kind.name == "decimal":
        digits, scale = kind.parameters
        return f"decimal({min(digits + _CARRIED_DIGITS, MOST_DIGITS)},{scale})"
    # A sum of 64-bit integers may have more than 64 bits.
    return "bigint" if of.type == "int" else f"decimal({MOST_DIGITS},0)"
