"""Columns that are no part of a record's value: its key, partition, offset, timestamp and headers."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import Column as Expr
from pyspark.sql import functions as F

from liveboard.contract.board import Source
from liveboard.contract.schema import Column
from liveboard.pipeline.fields import exact, field_of, is_wrong
from liveboard.pipeline.formats import Rule, is_text, shown, text_of

_HEADER = "headers."


def need_headers(sources: Iterable[Source]) -> bool:
    """Whether a column is made of headers; they are read only then."""
    return any(column.origin.startswith(_HEADER) for source in sources for column in source.columns)


def kafka_value(column: Column) -> Expr:
    """The column's value of the column's type; null where it is wrong."""
    if column.origin in ("partition", "offset", "timestamp"):
        return F.col(column.origin)
    found, of_text = _bytes(column), field_of(column).of_text
    if column.kind.name == "binary":
        return found
    text = F.when(is_text(found), text_of(found))
    return of_text(text) if of_text else exact(F.try_parse_json(text), column)


def kafka_rules(column: Column) -> list[Rule]:
    """Why the record is refused for this column."""
    if column.origin in ("partition", "offset", "timestamp") or column.kind.name == "binary":
        return []
    found = _bytes(column)
    text = F.when(is_text(found), text_of(found))
    if field_of(column).of_text:
        unread = kafka_value(column).isNull()
    else:
        variant = F.try_parse_json(text)
        unread = variant.isNull() | is_wrong(variant, column)
    quoted = F.concat(F.lit('"'), shown(F.call_function("make_valid_utf8", text_of(found))), F.lit('"'))
    return [
        Rule(
            F.coalesce(found.isNotNull() & text.isNull(), F.lit(False)),
            lambda: F.lit(f"{column.place}: expected UTF-8 text, found bytes that are not"),
        ),
        Rule(
            F.coalesce(text.isNotNull() & unread, F.lit(False)),
            lambda: F.concat(F.lit(f"{column.place}: expected {column.type}, found "), quoted),
        ),
    ]


def _bytes(column: Column) -> Expr:
    if column.origin == "key":
        return F.col("key")
    name = column.origin.removeprefix(_HEADER)
    # A header may be there several times; as everywhere in Kafka the last one counts.
    named = F.filter(F.col("headers"), lambda header: header["key"] == name)
    return F.try_element_at(named, F.lit(-1))["value"]
