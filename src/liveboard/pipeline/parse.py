"""JSON records to typed rows; every record that cannot be read gets a reason."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce
from operator import or_
from typing import NamedTuple

from pyspark.sql import Column as Expr
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from liveboard.config import Source
from liveboard.contract.schema import Column
from liveboard.pipeline.encode import timestamp_text

# from_json is lenient where we are not: what these options and the checks below let through, it would not.
# NaN is read as a number so that the reason can name its field.
_OPTIONS = {
    "mode": "PERMISSIVE",
    "columnNameOfCorruptRecord": "corrupt",
    "allowSingleQuotes": "false",
    "allowNonNumericNumbers": "true",
}
# Dates and times are read as text and converted here: from_json would take numbers for them too.
_READ_AS = {"date": "string", "timestamp": "string"}
_DATE = r"^\d{4}-\d{2}-\d{2}$"
_TIMESTAMP = r"^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}(\.\d{1,6})?(Z|[+-]\d{2}:\d{2})?$"
_NOT_QUOTED_FIRST = list('"-+0123456789{[')
_NOT_QUOTED_WORDS = ["true", "false"]
_SHOWN_CHARACTERS = 100


class Rule(NamedTuple):
    """What makes a record refused."""

    broken: Expr
    why: Callable[[], Expr]
    """What is then said; put together only where it is asked for."""


def parse(records: DataFrame, sources: Sequence[Source], *, reasons: bool) -> DataFrame:
    """Kafka records as typed rows.

    Adds to `topic`, `partition`, `offset`, `ts` (text) and `value`: one struct per source in `row_column(source)`,
    null for refused records and other topics, and with `reasons` also `reason`, null for good records. Tombstones
    have neither.
    """
    typed = records.select(
        "topic",
        "partition",
        "offset",
        timestamp_text(F.col("timestamp")).alias("ts"),
        "value",
        *[_typed(source).alias(row_column(source)) for source in sources],
    )
    seen = typed.withColumns({_seen_column(source): _seen(source) for source in sources})
    rules = {source.name: _rules(source) for source in sources}
    columns = {row_column(source): _row(source, rules[source.name]) for source in sources}
    if reasons:
        columns["reason"] = F.coalesce(*[F.when(_from(source), _reason(rules[source.name])) for source in sources])
    return seen.withColumns(columns)


def row_column(source: Source) -> str:
    """The name of the column that holds the source's rows."""
    return f"{source.name}_row"


def _seen_column(source: Source) -> str:
    return f"{source.name}_seen"


def _from(source: Source) -> Expr:
    return F.col("topic") == source.topic


def _text() -> Expr:
    return F.col("value").cast("string")


def _readable(source: Source) -> Expr:
    return (F.octet_length("value") <= source.max_value_bytes) & F.call_function("is_valid_utf8", _text())


def _typed(source: Source) -> Expr:
    """The record read by the source's schema; fields of a wrong type are null, but not all of them: see `_odd`."""
    fields = [f"{_quoted(column)} {_READ_AS.get(column.type, column.type)}" for column in source.columns]
    return F.when(_from(source) & _readable(source), _read_json(fields))


def _seen(source: Source) -> Expr:
    """The record read without types in mind, which tells what really came; null where nothing is doubtful."""
    odd = reduce(or_, [_odd(source, column) for column in source.columns], _corrupt(source))
    return F.when(odd, _read_json([f"{_quoted(column)} variant" for column in source.columns]))


def _read_json(fields: Sequence[str]) -> Expr:
    # from_json stops at the end of the first value and ignores what follows it; inside an object it cannot.
    wrapped = F.concat(F.lit('{"row":'), _text(), F.lit(',"end":1}'))
    return F.from_json(wrapped, f"row struct<{', '.join(fields)}>, end int, corrupt string", _OPTIONS)


def _quoted(column: Column) -> str:
    return "`" + column.name.replace("`", "``") + "`"


def _corrupt(source: Source) -> Expr:
    return F.col(row_column(source))["corrupt"].isNotNull()


def _rules(source: Source) -> list[Rule]:
    """In the order of asking."""
    document = F.col(row_column(source))
    size, limit = F.octet_length("value"), source.max_value_bytes
    rules = [
        Rule(size > limit, lambda: F.concat(F.lit(f"value: expected at most {limit} bytes, found "), size)),
        Rule(document.isNull(), lambda: F.lit("value: expected UTF-8 text, found bytes that are not")),
        Rule(
            document["row"].isNull() | document["end"].isNull(),
            lambda: F.concat(F.lit("value: expected a JSON object, found "), _shown(_text())),
        ),
    ]
    if source.on_error == "null":
        return rules
    doubtful = F.col(_seen_column(source)).isNotNull()
    wrong_fields = [
        Rule(doubtful & _wrong(source, column), partial(_field_message, source, column)) for column in source.columns
    ]
    repeated = Rule(_corrupt(source), lambda: F.lit("value: expected every field once, found one repeated"))
    return [*rules, *wrong_fields, repeated]


def _reason(rules: Sequence[Rule]) -> Expr:
    """Why the record is refused, or null."""
    return F.when(F.col("value").isNotNull(), F.coalesce(*[F.when(rule.broken, rule.why()) for rule in rules]))


def _odd(source: Source, column: Column) -> Expr:
    """Cheap, and true for every field of a wrong type that from_json accepts (and for some good ones)."""
    value = F.col(row_column(source))["row"][column.name]
    match column.type:
        case "string":
            odd = F.substring(value, 1, 1).isin(_NOT_QUOTED_FIRST) | value.isin(_NOT_QUOTED_WORDS)
        case "double":
            odd = F.isnan(value) | (F.abs(value) == float("inf"))
        case "date" | "timestamp":
            odd = value.isNotNull() & _converted(value, column.type).isNull()
        case _:
            return F.lit(False)
    return F.coalesce(odd, F.lit(False))


def _field_message(source: Source, column: Column) -> Expr:
    variant = F.col(_seen_column(source))["row"][column.name]
    kind = F.lower(F.regexp_extract(F.schema_of_variant(variant), "^[A-Z]+", 0))
    expected = F.lit(f"{column.name}: expected {column.type}, found ")
    return F.concat(expected, _shown(F.to_json(variant)), F.lit(" ("), kind, F.lit(")"))


def _wrong(source: Source, column: Column) -> Expr:
    """Whether the field that came is neither absent, null nor of its type."""
    variant = F.col(_seen_column(source))["row"][column.name]
    kind = F.schema_of_variant(variant)
    match column.type:
        case "string":
            right = kind == "STRING"
        case "boolean":
            right = kind == "BOOLEAN"
        case "bigint":
            right = kind == "BIGINT"
        case "int":
            right = (kind == "BIGINT") & F.try_variant_get(variant, "$", "int").isNotNull()
        case "double":
            number = F.try_variant_get(variant, "$", "double")
            right = kind.rlike("^(BIGINT|DECIMAL|DOUBLE)") & (F.abs(number) < float("inf"))
        case _:
            text = F.try_variant_get(variant, "$", "string")
            right = (kind == "STRING") & _converted(text, column.type).isNotNull()
    return F.coalesce((kind != "VOID") & ~F.coalesce(right, F.lit(False)), F.lit(False))


def _row(source: Source, rules: Sequence[Rule]) -> Expr:
    """The typed row, null when the record was refused."""
    row = F.col(row_column(source))["row"]
    values = []
    for column in source.columns:
        value = row[column.name]
        if column.type in _READ_AS:
            value = _converted(value, column.type)
        elif source.on_error == "null" and column.type in ("string", "double"):
            value = F.when(~_wrong(source, column), value)
        values.append(value.alias(column.name))
    refused = reduce(or_, [rule.broken for rule in rules])
    return F.when(row.isNotNull() & ~refused, F.struct(*values))


def _converted(text: Expr, type_: str) -> Expr:
    return F.when(text.rlike(_DATE if type_ == "date" else _TIMESTAMP), text.try_cast(type_))


def _shown(text: Expr) -> Expr:
    shortened = F.concat(F.substring(text, 1, _SHOWN_CHARACTERS), F.lit("…"))
    return F.when(F.length(text) > _SHOWN_CHARACTERS, shortened).otherwise(text)
