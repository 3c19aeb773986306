"""What a record without a value removes: the key of a table by key, read from the key of the Kafka record.

Such a record has no columns. Its Kafka key is a JSON object with the key's columns or, where there is one column, its
value, as plain text or as JSON. A column that is made of the Kafka record itself needs none of this.
"""

from __future__ import annotations

from functools import reduce
from operator import and_

from pyspark.sql import Column as Expr
from pyspark.sql import functions as F

from liveboard.contract.board import Source
from liveboard.contract.formats import FORMATS
from liveboard.contract.schema import Column
from liveboard.pipeline.fields import exact, field_of
from liveboard.pipeline.formats import Format, is_text, shown, text_of
from liveboard.pipeline.kafka_columns import kafka_value
from liveboard.pipeline.shape import VARIANT, Shape, fields_text, variant_at

_OPTIONS = {"mode": "PERMISSIVE", "allowSingleQuotes": "false"}
_PAYLOAD = "payload"


def key_columns(source: Source) -> list[Column]:
    """The key of a table by key, in the order of the setting."""
    columns = {column.name: column for column in source.columns}
    return [columns[name] for name in source.key]


def read_key(source: Source) -> Expr:
    """The Kafka key as struct(named, plain): by the names of its fields, and as one value; all are variants."""
    # As in a record's value: what follows the first JSON value is an error only inside an object.
    wrapped = F.concat(F.lit('{"row":'), text_of(F.col("key")), F.lit(',"end":1}'))
    fields = fields_text({name: Shape(VARIANT) for name in _fields(source)})
    payload = f", {_PAYLOAD} struct<{fields}>" if FORMATS[source.format].has_envelope else ""
    named, plain = (
        F.when(look["end"] == 1, look["row"])
        for look in (
            F.from_json(wrapped, f"row {type_}, end int", _OPTIONS) for type_ in (f"struct<{fields}{payload}>", VARIANT)
        )
    )
    return F.when(is_text(F.col("key")), F.struct(named.alias("named"), plain.alias("plain")))


def removed_row(format: Format, read: Expr) -> Expr:
    """The row of which only the key is known, from the value where that tells it, else from the Kafka key, or null."""
    columns = key_columns(format.source)
    told = [(column, format.removed(column)) for column in columns if not column.origin]
    by_value = {column.name: value for column, value in told if value is not None}
    of_kafka = {column.name: kafka_value(column) for column in columns if column.origin}
    by_key = {column.name: _value(format.source, column, read) for column in columns if not column.origin}
    row = _row_of(format.source, {**of_kafka, **by_key})
    return F.coalesce(_row_of(format.source, {**of_kafka, **by_value}), row) if by_value else row


def unreadable_key(source: Source) -> Expr:
    """Why the Kafka key does not tell which row goes."""
    columns = key_columns(source)
    as_object = "{" + ", ".join(f'"{column.name}": …' for column in columns) + "}"
    if len(columns) == 1:
        (column,) = columns
        as_object = f"{column.name} as {'text' if column.type == 'string' else column.type} or as {as_object}"
    found = shown(F.call_function("make_valid_utf8", text_of(F.col("key"))))
    return F.concat(F.lit(f"key: expected {as_object}, found "), F.coalesce(found, F.lit("none")))


def _fields(source: Source) -> list[str]:
    """The fields of the Kafka key that may be a column: by its path, or by its name."""
    found: dict[str, str] = {}
    for column in key_columns(source):
        for name in (*column.steps[:1], column.name):
            # Spark takes names that differ only by case for the same.
            found.setdefault(str(name).lower(), str(name))
    return list(found.values())


def _row_of(source: Source, values: dict[str, Expr]) -> Expr:
    others = {column.name: F.lit(None).cast(column.kind.spark) for column in source.columns}
    is_whole = reduce(and_, [value.isNotNull() for value in values.values()])
    return F.when(is_whole, F.struct(*[value.alias(name) for name, value in {**others, **values}.items()]))


def _value(source: Source, column: Column, read: Expr) -> Expr:
    named = F.coalesce(*[exact(variant, column) for variant in _named(source, column, read["named"])])
    if len(source.key) > 1:
        return named
    plain, of_text = exact(read["plain"], column), field_of(column).of_text
    if of_text:
        plain = F.coalesce(plain, of_text(F.when(read.isNotNull(), text_of(F.col("key")))))
    return F.when(read["named"].isNotNull(), named).otherwise(plain)


def _named(source: Source, column: Column, row: Expr) -> list[Expr]:
    """What the key has at the column's path, and under its name."""
    places = [*([column.steps] if column.steps else []), (column.name,)]
    found = []
    for name, *more in places:
        if str(name) not in _fields(source):
            continue
        field = row[str(name)]
        if FORMATS[source.format].has_envelope:
            field = F.when(row[_PAYLOAD].isNotNull(), row[_PAYLOAD][str(name)]).otherwise(field)
        found.append(variant_at(field, tuple(more)))
    return found
