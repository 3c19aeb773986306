"""Records to typed rows; every record that cannot be read gets a reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType

from pyspark.sql import Column as Expr
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from liveboard.contract.board import Source
from liveboard.contract.formats import FormatName
from liveboard.contract.schema import Column
from liveboard.pipeline.avro_format import AvroFormat
from liveboard.pipeline.avro_schema import AvroSchemas
from liveboard.pipeline.debezium_format import DebeziumFormat
from liveboard.pipeline.encode import timestamp_text
from liveboard.pipeline.formats import Format, Rule
from liveboard.pipeline.json_format import JsonFormat
from liveboard.pipeline.kafka_columns import kafka_rules, kafka_value, need_headers
from liveboard.pipeline.kept import kept
from liveboard.pipeline.keys import key_columns, read_key, removed_row, unreadable_key

READERS: dict[FormatName, type[Format]] = {"json": JsonFormat, "debezium": DebeziumFormat, "avro": AvroFormat}
NO_SCHEMAS: Mapping[str, AvroSchemas] = MappingProxyType({})
OF_SOURCE = "of_source"
"""The column that has the name of the record's source."""
REMOVED = "removed"
"""The column that says whether the record removes the row of its key; it is there where a source is a table by key."""


def parse(records: DataFrame, sources: Sequence[Source], schemas: Mapping[str, AvroSchemas] = NO_SCHEMAS) -> DataFrame:
    """Kafka records as typed rows.

    Adds to `topic`, `partition`, `offset`, `ts` (text), `timestamp`, `key`, `value` and, where a source has a column of
    them, `headers`: the source's name in `OF_SOURCE`, one struct per source in `row_column(source)`, null for refused
    records and other topics, and `reason`, null for good records. What removes a row from a table by key has a row of
    which only the key is known; other tombstones have neither. `schemas` are those of sources that need them, by name.
    """
    whose = F.coalesce(*[F.when(F.col("topic") == source.topic, F.lit(source.name)) for source in sources])
    anywhere = tuple(replace(source, topic=source.name) for source in sources)
    first, *more = _steps(anywhere, {source.name: schemas.get(source.name) for source in sources})
    parsed = records.withColumn(OF_SOURCE, whose).select(*first.values())
    for columns in more:
        parsed = parsed.withColumns(columns)
    return parsed


@kept
def _steps(sources: Sequence[Source], schemas: Mapping[str, AvroSchemas | None]) -> list[dict[str, Expr]]:
    """What is made of a record, step by step: each makes its columns from those before."""
    formats = {source.name: _format(source, schemas) for source in sources}
    by_key = [formats[source.name] for source in sources if source.by_key]
    of_kafka = ["topic", "partition", "offset", "timestamp", "key", "value"]
    of_kafka += ["headers"] if need_headers(sources) else []
    first = {
        OF_SOURCE: F.col(OF_SOURCE),
        **{name: F.col(name) for name in of_kafka},
        "ts": timestamp_text(F.col("timestamp")).alias("ts"),
        **{(name := row_column(source)): _first_look(formats[source.name]).alias(name) for source in sources},
    }
    again = {_second_column(source): formats[source.name].look_again() for source in sources}
    second = {name: look for name, look in again.items() if look is not None}
    removals = {}
    if by_key:
        removed = F.coalesce(*[F.when(_from(format.source), _removes(format)) for format in by_key], F.lit(False))
        keys = {_key_column(format.source): F.when(_removes(format), read_key(format.source)) for format in by_key}
        removals = {REMOVED: removed, **keys}
    reason = F.coalesce(*[F.when(_from(source), _reason(formats[source.name])) for source in sources])
    rows = {row_column(source): _row(formats[source.name]) for source in sources}
    return [step for step in (first, second, removals, {"reason": reason}, rows) if step]


def row_column(source: Source) -> str:
    """The name of the column that holds the source's rows."""
    return f"{source.name}_row"


def _second_column(source: Source) -> str:
    return f"{source.name}_seen"


def _key_column(source: Source) -> str:
    return f"{source.name}_key"


def _format(source: Source, schemas: Mapping[str, AvroSchemas | None]) -> Format:
    looks = (F.col(row_column(source)), F.col(_second_column(source)))
    return READERS[source.format](source, *looks, schemas.get(source.name) or AvroSchemas())


def _from(source: Source) -> Expr:
    return F.col(OF_SOURCE) == source.name


def _is_tombstone() -> Expr:
    return F.col("value").isNull()


def _removes(format: Format) -> Expr:
    """Whether the record removes the row of its key."""
    says = format.removes()
    gone = _is_tombstone() if says is None else _is_tombstone() | F.coalesce(says, F.lit(False))
    return _from(format.source) & gone


def _first_look(format: Format) -> Expr:
    fits = F.octet_length("value") <= format.source.max_value_bytes
    return F.when(_from(format.source) & (fits & format.can_be_read()), format.look())


def _rules(format: Format) -> list[Rule]:
    """In the order of asking."""
    source = format.source
    size, limit = F.octet_length("value"), source.max_value_bytes
    too_large = Rule(size > limit, lambda: F.concat(F.lit(f"value: expected at most {limit} bytes, found "), size))
    strict = [column for column in source.columns if source.is_strict(column)]
    of_kafka = [rule for column in strict if column.origin for rule in kafka_rules(column)]
    wrong = format.wrong([column for column in strict if not column.origin])
    no_key = [
        Rule(format.has_row() & _value(format, column).isNull(), partial(_no_key_message, column))
        for column in (key_columns(source) if source.by_key else ())
    ]
    return [too_large, *format.unreadable(), *wrong, *of_kafka, *no_key]


def _no_key_message(column: Column) -> Expr:
    return F.lit(f"{column.place}: expected a value, since it is the key, found null")


def _reason(format: Format) -> Expr:
    """Why the record is refused, or null."""
    broken = [F.when(rule.broken, rule.why()) for rule in _rules(format)]
    reason = F.when(~_is_tombstone(), F.coalesce(*broken))
    if not format.source.by_key:
        return reason
    unread = F.col(REMOVED) & removed_row(format, F.col(_key_column(format.source))).isNull()
    return F.coalesce(reason, F.when(unread, unreadable_key(format.source)))


def _value(format: Format, column: Column) -> Expr:
    return kafka_value(column) if column.origin else format.value(column)


def _row(format: Format) -> Expr:
    """The typed row, null when the record was refused."""
    values = [_value(format, column).alias(column.name) for column in format.source.columns]
    is_good = F.col("reason").isNull()
    found = F.when(format.has_row() & is_good, F.struct(*values))
    if not format.source.by_key:
        return found
    gone = F.col(REMOVED) & is_good
    return F.coalesce(found, F.when(gone, removed_row(format, F.col(_key_column(format.source)))))
