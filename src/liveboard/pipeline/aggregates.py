"""Aggregate tables, in the same state as the joins: a group is remembered by what its measures need.

A record has an entry for each group that it counts in. The entry's `values` have its time and the arguments of the
measures, each in a field of its type; the aggregates share the fields, since a group belongs to one of them. So the
state has one column for each function of each field, however many aggregates there are.

A group that ends (`keep`) has in `until` when it does, and Spark drops it from the state at a checkpoint after that.
Its clock is Spark's watermark: the newest `until`, less the longest time from the beginning of a window to its `until`.
That is never after the newest record, by which tables are judged: what is dropped is no longer shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pyspark.sql import Column as Expr
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from liveboard.contract.aggregates import Measure, columns_of, measures_of
from liveboard.contract.board import Aggregate, Board, Source
from liveboard.contract.expressions import Expression, parse_condition
from liveboard.contract.schema import TS, Column
from liveboard.contract.types import column_type
from liveboard.pipeline.encode import json_value, timestamp_text
from liveboard.pipeline.expressions import compiled
from liveboard.pipeline.rows import change, key_of_row

VALUES = "values"
UNTIL = "until"
_COUNT, _NEWEST = "records", "newest"
_LARGEST_DOUBLE = 1.7976931348623157e308


@dataclass(frozen=True)
class ArgumentField:
    """Where the arguments of one type are, the first of an aggregate, the second and so on."""

    type: str
    number: int

    @property
    def name(self) -> str:
        """Of the field."""
        return re.sub(r"\W", "_", f"{self.type}_{self.number}")

    def state(self, function: str) -> str:
        """The column of the state in which a function of it is."""
        return f"{function}_{self.name}"


@dataclass(frozen=True)
class Grouping:
    """An aggregate with all that is known of it."""

    id: int
    """Among the memories of the board."""
    aggregate: Aggregate
    source: Source
    measures: tuple[Measure, ...]

    @property
    def fields(self) -> dict[Expression, ArgumentField]:
        """Where each argument is."""
        found: dict[Expression, ArgumentField] = {}
        for measure in self.measures:
            if measure.of is not None and measure.of not in found:
                number = sum(field.type == measure.of.type for field in found.values())
                found[measure.of] = ArgumentField(measure.of.type, number)
        return found

    @property
    def ends(self) -> bool:
        """Whether its groups do not stay for ever."""
        return self.aggregate.keep > 0


def groupings(board: Board, first_id: int) -> list[Grouping]:
    """The board's aggregates over records, numbered on from the memories of its joins."""
    of_records = [each for each in board.aggregates.values() if not board.sources[each.source].by_key]
    return [
        Grouping(number, each, board.sources[each.source], measures_of(each, board.sources[each.source]))
        for number, each in enumerate(of_records, first_id)
    ]


def values_type(found: Sequence[Grouping]) -> str:
    """Of the entries' `values`, as Spark writes it."""
    fields = "".join(f",{field.name}:{column_type(field.type).spark}" for field in _fields(found))
    return f"struct<ts:string{fields}>"


def counted(grouping: Grouping, found: Sequence[Grouping], row: Expr) -> Expr:
    """The `values` of a record with this row; null where the record does not count."""

    def column(name: str) -> Expr:
        return F.col("timestamp") if name == TS.name else row[name]

    arguments = {field.name: compiled(of, column) for of, field in grouping.fields.items()}
    absent = {field.name: F.lit(None).cast(column_type(field.type).spark) for field in _fields(found)}
    values = F.struct("ts", *[value.alias(name) for name, value in (absent | arguments).items()])
    counts = row.isNotNull()
    if grouping.aggregate.where:
        condition = parse_condition(grouping.aggregate.where, columns_of(grouping.source))
        counts &= F.coalesce(compiled(condition, column), F.lit(False))
    return F.when(counts, values)


def window_starts(aggregate: Aggregate) -> Expr:
    """The beginning of the windows that the record falls into, in milliseconds: one, or of sliding ones an array."""
    slide = aggregate.slide or aggregate.window
    now = F.unix_millis("timestamp")
    last = now - F.pmod(now, F.lit(slide))
    if slide == aggregate.window:
        return last
    return F.sequence(last - (aggregate.window - slide), last, F.lit(slide).cast("bigint"))


def window_texts(aggregate: Aggregate, start: Expr) -> list[Expr]:
    """The JSON texts of a window's two columns."""
    ends = (start, start + aggregate.window)
    return [F.concat(F.lit('"'), timestamp_text(F.timestamp_millis(each)), F.lit('"')) for each in ends]


def until(aggregate: Aggregate, start: Expr) -> Expr:
    """When a window's group goes; null if it never does."""
    if not aggregate.keep:
        return F.lit(None).cast("timestamp")
    return F.timestamp_millis(start + (aggregate.window + aggregate.keep))


def with_clock(entries: DataFrame, found: Iterable[Grouping]) -> DataFrame:
    """Entries of which Spark forgets groups that have ended."""
    longest = max((g.aggregate.window + g.aggregate.keep for g in found if g.ends), default=0)
    return entries.withWatermark(UNTIL, f"{longest} milliseconds") if longest else entries


def accumulated(found: Sequence[Grouping]) -> list[Expr]:
    """What is kept of a group, as aggregates of its entries."""
    if not found:
        return []
    time = F.col(VALUES)["ts"]
    columns = {_NEWEST: F.max(time)}
    # Only what some row shows: Spark would leave it out of the stream that follows, and refuse the state.
    if any(measure.of is None for grouping in found for measure in grouping.measures):
        columns[_COUNT] = F.count(time)
    for grouping in found:
        for measure in grouping.measures:
            if measure.of is not None:
                field = grouping.fields[measure.of]
                value = F.col(VALUES)[field.name]
                columns |= {field.state(part): _kept(part, value, field) for part in _parts(measure)}
    return [column.alias(name) for name, column in columns.items()]


def group_row(grouping: Grouping) -> Expr:
    """The changelog record of a group, from what is kept of it."""
    key = F.col("key")
    has_key = grouping.aggregate.by or grouping.aggregate.window
    measures = [json_value(_value(grouping, each), Column(each.name, each.type)) for each in grouping.measures]
    members = [*([key] if has_key else []), *measures, F.concat(F.lit('"'), F.col(_NEWEST), F.lit('"'))]
    first, *more = members
    value = F.concat(F.lit("["), first, *[part for each in more for part in (F.lit(","), each)], F.lit("]"))
    return change(grouping.aggregate.name, key_of_row(key), value)


def rows_of_groups(entries: DataFrame, found: Sequence[Grouping]) -> DataFrame:
    """The changelog records of all groups that have not ended."""
    ends = any(grouping.ends for grouping in found)
    mine = entries.where(F.col("memory").isin([grouping.id for grouping in found]))
    groups = mine.groupBy("key", "memory", *([UNTIL] if ends else [])).agg(*accumulated(found))
    if ends:
        now = F.max(F.when(F.col(UNTIL).isNotNull(), F.col(_NEWEST))).over(Window.partitionBy(F.lit(0)))
        stays = F.col(UNTIL).isNull() | (timestamp_text(F.col(UNTIL)) > F.col("now"))
        groups = groups.withColumn("now", now).where(stays)
    rows = [F.when(F.col("memory") == grouping.id, group_row(grouping)) for grouping in found]
    return groups.select(F.coalesce(*rows).alias("change")).select("change.*")


def _fields(found: Iterable[Grouping]) -> list[ArgumentField]:
    return list(dict.fromkeys(field for grouping in found for field in grouping.fields.values()))


def _parts(measure: Measure) -> tuple[str, ...]:
    return ("sum", "count") if measure.function == "avg" else (measure.function,)


def _kept(part: str, value: Expr, field: ArgumentField) -> Expr:
    match part:
        case "count":
            return F.count(value)
        case "min":
            return F.min(value)
        case "max":
            return F.max(value)
    # So that no order of 64-bit integers is too large in between.
    return F.try_sum(value.cast("decimal(28,0)") if field.type == "bigint" else value)


def _value(grouping: Grouping, measure: Measure) -> Expr:
    if measure.of is None:
        return F.col(_COUNT)
    field = grouping.fields[measure.of]
    parts = {part: F.col(field.state(part)) for part in _parts(measure)}
    if measure.function == "avg":
        return _finite(F.try_divide(parts["sum"].cast("double"), parts["count"]))
    found = parts[measure.function]
    return _finite(found) if measure.function == "sum" and measure.type == "double" else found


def _finite(found: Expr) -> Expr:
    """Infinities are no JSON."""
    return F.when(found.between(-_LARGEST_DOUBLE, _LARGEST_DOUBLE), found)
