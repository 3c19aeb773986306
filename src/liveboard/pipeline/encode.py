"""Typed columns to the JSON text that changelog rows are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pyspark.sql import Column as Expr
from pyspark.sql import functions as F

from liveboard.contract.schema import Column

TIMESTAMP_PATTERN = "yyyy-MM-dd'T'HH:mm:ss.SSSSSS'Z'"
# A double, and so a browser, holds every integer up to here exactly.
_LARGEST_EXACT = 2**53


def json_value(value: Expr, column: Column) -> Expr:
    """The JSON text of `value`, which is of the column's type; never SQL null."""
    return _JSON[column.kind.name](value)


def json_members(row: Expr, columns: Iterable[Column]) -> Expr:
    """The fields of struct `row` as members of a JSON array, each behind a comma: `,"Ada",36`."""
    parts = [part for column in columns for part in (F.lit(","), json_value(row[column.name], column))]
    return F.concat(*parts) if parts else F.lit("")


def timestamp_text(value: Expr) -> Expr:
    """ISO-8601 in UTC with microseconds: fixed width, so that text order is time order."""
    return F.date_format(value, TIMESTAMP_PATTERN)


def _escaped(value: Expr) -> Expr:
    # The only native function that escapes JSON strings writes whole documents: `["Ada"]`, `[null]`. Trimming
    # names the document once, so that it is written once; the quotes keep the text's own brackets.
    return F.btrim(F.to_json(F.array(value)), F.lit("[]"))


def _bare(value: Expr) -> Expr:
    return _or_null(value.cast("string"))


def _exact(value: Expr) -> Expr:
    number = value.cast("string")
    is_exact = value.between(-_LARGEST_EXACT, _LARGEST_EXACT)
    return _or_null(F.when(is_exact, number).otherwise(_quoted(number)))


def _digits(value: Expr) -> Expr:
    return _or_null(_quoted(value.cast("string")))


def base64_text(value: Expr) -> Expr:
    """Bytes as base64."""
    # Spark breaks it into lines.
    return F.translate(F.base64(value), "\r\n", "")


def _base64(value: Expr) -> Expr:
    return _or_null(_quoted(base64_text(value)))


def _day(value: Expr) -> Expr:
    return _or_null(_quoted(value.cast("string")))


def _moment(value: Expr) -> Expr:
    return _or_null(_quoted(timestamp_text(value)))


_JSON: dict[str, Callable[[Expr], Expr]] = {
    "string": _escaped,
    "boolean": _bare,
    "int": _bare,
    "bigint": _exact,
    "double": _bare,
    "decimal": _digits,
    "date": _day,
    "timestamp": _moment,
    "json": _escaped,
    "binary": _base64,
}


def _quoted(text: Expr) -> Expr:
    return F.concat(F.lit('"'), text, F.lit('"'))


def _or_null(text: Expr) -> Expr:
    return F.coalesce(text, F.lit("null"))
