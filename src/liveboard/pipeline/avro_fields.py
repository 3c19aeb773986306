"""How a column's values are made of Avro's: by exact widening, or not at all."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column as Expr
from pyspark.sql import functions as F

from liveboard.contract.schema import Column
from liveboard.pipeline.avro_schema import AvroType
from liveboard.pipeline.encode import TIMESTAMP_PATTERN
from liveboard.pipeline.fields import FIRST_MOMENT, LAST_MOMENT, field_of

_FIRST_DAY, _LAST_DAY = "0001-01-01", "9999-12-31"
_JSON_OPTIONS = {
    "ignoreNullFields": "false",
    "timestampFormat": TIMESTAMP_PATTERN,
    "timestampNTZFormat": TIMESTAMP_PATTERN.removesuffix("'Z'"),
}


def fitting(value: Expr, type_: AvroType, column: Column) -> Expr | None:
    """What makes a value of the column's type of an Avro value, or null where that does not fit.

    None if no value of this Avro type can fit.
    """
    return AVRO_FIELDS[column.kind.name](value, type_, column)


def json_text(value: Expr) -> Expr:
    """The value as JSON; null where there is none."""
    in_brackets = F.to_json(F.array(value), _JSON_OPTIONS)
    return F.when(value.isNotNull(), F.substring(in_brackets, F.lit(2), F.length(in_brackets) - 2))


def _is_plain(type_: AvroType, *kinds: str) -> bool:
    return type_.kind in kinds and not type_.logical


def _of_text(value: Expr, type_: AvroType, column: Column) -> Expr | None:
    """As in JSON, a text can hold a value of another type."""
    of_text = field_of(column).of_text
    return of_text(value) if of_text and _is_plain(type_, "string") else None


def _string(value: Expr, type_: AvroType, column: Column) -> Expr | None:
    # Avro does not check whether a text is UTF-8.
    return F.when(F.call_function("is_valid_utf8", value), value) if type_.kind in ("string", "enum") else None


def _boolean(value: Expr, type_: AvroType, column: Column) -> Expr | None:
    return value if type_.kind == "boolean" else None


def _int(value: Expr, type_: AvroType, column: Column) -> Expr | None:
    return value if _is_plain(type_, "int") else None


def _bigint(value: Expr, type_: AvroType, column: Column) -> Expr | None:
    return value.cast("bigint") if _is_plain(type_, "int", "long") else None


def _double(value: Expr, type_: AvroType, column: Column) -> Expr | None:
    if not _is_plain(type_, "int", "long", "float", "double"):
        return None
    number = value.cast("double")
    return F.when(F.abs(number) < float("inf"), number)


def _decimal(value: Expr, type_: AvroType, column: Column) -> Expr | None:
    number = value.try_cast(column.kind.spark)
    if type_.logical == "decimal":
        # Back again, because digits that do not fit behind the point were rounded away.
        return F.when(number.try_cast(f"decimal({type_.precision},{type_.scale})") == value, number)
    return number if _is_plain(type_, "int", "long") else _of_text(value, type_, column)


def _date(value: Expr, type_: AvroType, column: Column) -> Expr | None:
    if type_.logical != "date":
        return _of_text(value, type_, column)
    return F.when(value.between(F.lit(_FIRST_DAY).cast("date"), F.lit(_LAST_DAY).cast("date")), value)


def _timestamp(value: Expr, type_: AvroType, column: Column) -> Expr | None:
    if type_.logical.startswith(("timestamp", "local-timestamp")):
        moment = value.cast("timestamp")
        return F.when(F.unix_micros(moment).between(FIRST_MOMENT, LAST_MOMENT), moment)
    if column.unit and _is_plain(type_, "int", "long"):
        of_text = field_of(column).of_text
        return of_text(value.cast("string")) if of_text else None
    return _of_text(value, type_, column)


def _json(value: Expr, type_: AvroType, column: Column) -> Expr | None:
    return json_text(value)


def _binary(value: Expr, type_: AvroType, column: Column) -> Expr | None:
    return value if _is_plain(type_, "bytes", "fixed") else None


AVRO_FIELDS: dict[str, Callable[[Expr, AvroType, Column], Expr | None]] = {
    "string": _string,
    "boolean": _boolean,
    "int": _int,
    "bigint": _bigint,
    "double": _double,
    "decimal": _decimal,
    "date": _date,
    "timestamp": _timestamp,
    "json": _json,
    "binary": _binary,
}
