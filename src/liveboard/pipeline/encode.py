"""Typed columns to the JSON text that changelog rows are made of."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import Column as Expr
from pyspark.sql import functions as F

from liveboard.contract.schema import Column

TIMESTAMP_PATTERN = "yyyy-MM-dd'T'HH:mm:ss.SSSSSS'Z'"
# A double, and so a browser, holds every integer up to here exactly.
_LARGEST_EXACT = 2**53


def json_value(value: Expr, type_: str) -> Expr:
    """The JSON text of `value`, of one of the contract's types; never SQL null."""
    match type_:
        case "string":
            # The only native function that escapes JSON strings writes whole documents: `["Ada"]`, `[null]`. Trimming
            # names the document once, so that it is written once; the quotes keep the text's own brackets.
            return F.btrim(F.to_json(F.array(value)), F.lit("[]"))
        case "bigint":
            exact = value.between(-_LARGEST_EXACT, _LARGEST_EXACT)
            number = value.cast("string")
            text = F.when(exact, number).otherwise(_quoted(number))
        case "date":
            text = _quoted(value.cast("string"))
        case "timestamp":
            text = _quoted(timestamp_text(value))
        case _:
            text = value.cast("string")
    return F.coalesce(text, F.lit("null"))


def json_members(row: Expr, columns: Iterable[Column]) -> Expr:
    """The fields of struct `row` as members of a JSON array, each behind a comma: `,"Ada",36`."""
    parts = [part for column in columns for part in (F.lit(","), json_value(row[column.name], column.type))]
    return F.concat(*parts) if parts else F.lit("")


def timestamp_text(value: Expr) -> Expr:
    """ISO-8601 in UTC with microseconds: fixed width, so that text order is time order."""
    return F.date_format(value, TIMESTAMP_PATTERN)


def _quoted(text: Expr) -> Expr:
    return F.concat(F.lit('"'), text, F.lit('"'))
