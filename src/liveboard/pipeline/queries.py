"""The two queries of a generation: source topics in, changelog topics out."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import Column as Expr
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamWriter

from liveboard.config import Board, Join
from liveboard.contract.names import REJECTS_TABLE, changelog_topic
from liveboard.contract.schema import REJECT_COLUMNS, Column
from liveboard.kafka.admin import MAX_CHANGELOG_BYTES
from liveboard.pipeline.encode import json_members, json_value
from liveboard.pipeline.groups import Group, groups, route
from liveboard.pipeline.joins import JOINS, Side, Target, position, remember, side
from liveboard.pipeline.parse import parse, row_column

# To be raised with every change of what the queries remember: checkpoints of another format are built anew.
STATE_FORMAT = 1
# The name under which the raw query's progress tells how many tombstones it skipped.
TOMBSTONES = "tombstones"
# Enough to see what a refused record was; the record itself stays in its topic.
REJECTED_VALUE_CHARACTERS = 65_536

Trigger = Mapping[str, str | bool]


@dataclass(frozen=True)
class Plan:
    """What a generation's queries read and write."""

    generation: str
    board: Board
    starting_offsets: Mapping[str, Mapping[str, int]]
    kafka_options: Mapping[str, str]

    def changelog(self, table: str) -> str:
        """The changelog topic of one of the generation's tables."""
        return changelog_topic(self.generation, table)


def raw_rows(records: DataFrame, plan: Plan) -> DataFrame:
    """Every source record as a row of its source's table or of the rejects, as changelog records."""
    sources = list(plan.board.sources.values())
    parsed = parse(records, sources, reasons=True)
    here = position(F.struct("partition", "offset"))
    source_rows = [
        F.when(
            F.col(row_column(source)).isNotNull(),
            _change(plan.changelog(source.table), here, _row_value(F.col(row_column(source)), source.columns)),
        )
        for source in sources
    ]
    reject = F.when(
        F.col("reason").isNotNull(),
        _change(plan.changelog(REJECTS_TABLE), F.concat(F.col("topic"), F.lit("-"), here), _reject_value()),
    )
    changes = parsed.select(F.coalesce(*source_rows, reject).alias("change"))
    # An array and explode, where a filter would do: a filter is pushed below the projection and parses all again.
    found = F.when(F.col("change").isNotNull(), F.array("change"))
    return changes.select(F.explode(found).alias("change")).select("change.*")


def joined_rows(records: DataFrame, plan: Plan, *, everything: bool) -> DataFrame:
    """The rows of all joins that every record adds or corrects, as changelog records.

    With `everything`, all rows of every key that a micro-batch touched: the fast way to build from nothing.
    """
    board_groups = groups(plan.board)
    sources = {source.name: source for group in board_groups for source in (group.a, group.b)}
    parsed = parse(records, list(sources.values()), reasons=False)
    known = remember(route(parsed, board_groups))
    changed = F.coalesce(
        *[F.when(F.col("group") == group.id, _group_rows(group, plan, everything)) for group in board_groups]
    )
    # `came` must be used in both modes: Spark would leave it out of the state, and the modes share a checkpoint.
    answered = known.where(F.col("came.record.offset") >= 0)
    return answered.select(F.explode(changed).alias("change")).select("change.*")


def prepare(spark: SparkSession, plan: Plan, checkpoint: Path, name: str, trigger: Trigger) -> DataStreamWriter:
    """`raw` or `join`, ready to be started: `availableNow` builds and ends, `realTime` follows for ever."""
    building = "availableNow" in trigger
    records = _read(spark, plan, name, building=building)
    if name == "raw":
        records = records.observe(TOMBSTONES, F.count_if(F.col("value").isNull()).alias("count"))
    changes = raw_rows(records, plan) if name == "raw" else joined_rows(records, plan, everything=building)
    return (
        changes.writeStream.format("kafka")
        .options(**_producer_options(plan, building=building))
        .option("checkpointLocation", str(checkpoint / name))
        .queryName(f"{plan.generation}-{name}-{'build' if building else 'follow'}")
        .outputMode("update")
        .trigger(**trigger)  # type: ignore[arg-type]
    )


def _read(spark: SparkSession, plan: Plan, name: str, *, building: bool) -> DataFrame:
    sources = plan.board.sources
    used = sources if name == "raw" else {s for join in plan.board.joins.values() for s in (join.left, join.right)}
    topics = sorted(sources[source].topic for source in used)
    offsets = {topic: plan.starting_offsets[topic] for topic in topics}
    reader = (
        spark.readStream.format("kafka")
        .options(**{f"kafka.{key}": value for key, value in plan.kafka_options.items()})
        .option("subscribe", ",".join(topics))
        .option("startingOffsets", json.dumps(offsets))
        # Retention may pass a checkpoint by while the pipeline is down: the rest still has to be read.
        .option("failOnDataLoss", "false")
    )
    if building:
        # Splits long partitions, so that one topic with one partition still keeps every core busy. Not into more:
        # all the pieces are read at once, and their tasks would take the cores' caches from each other.
        reader = reader.option("minPartitions", str(2 * (os.cpu_count() or 1)))
        # Spark asks for the topic's ends on a connection on which the consumer already waits for what comes next.
        reader = reader.option("kafka.fetch.max.wait.ms", "10")
    return reader.load()


def _producer_options(plan: Plan, *, building: bool) -> dict[str, str]:
    batching = {"linger.ms": "20", "batch.size": "262144"} if building else {"linger.ms": "0"}
    limits = {"max.request.size": str(MAX_CHANGELOG_BYTES), "buffer.memory": str(2 * MAX_CHANGELOG_BYTES)}
    return {f"kafka.{key}": value for key, value in {**plan.kafka_options, **batching, **limits}.items()}


def _group_rows(group: Group, plan: Plan, everything: bool) -> Expr:
    """The changelog records of all joins of the group."""

    def seen(source: str) -> Side:
        name = group.side(source)
        return side(name, ",null" * len(group.other_columns(name)), everything=everything)

    def changed(join: Join) -> Expr:
        target = Target(plan.changelog(join.name), F.col("key"))
        return JOINS[join.how](target, seen(join.left), seen(join.right))

    return F.concat(*[changed(join) for join in group.joins])


def _change(topic: str, key: Expr, value: Expr) -> Expr:
    return F.struct(F.lit(topic).alias("topic"), key.alias("key"), value.alias("value"))


def _row_value(row: Expr, columns: Sequence[Column]) -> Expr:
    """A whole changelog row: the columns, then `ts`."""
    first, *rest = columns
    first_value = json_value(row[first.name], first.type)
    return F.concat(F.lit("["), first_value, json_members(row, rest), F.lit(',"'), F.col("ts"), F.lit('"]'))


def _reject_value() -> Expr:
    value = F.call_function("make_valid_utf8", F.col("value").cast("string"))
    row = F.struct(
        "topic",
        "partition",
        "offset",
        "reason",
        F.substring(value, 1, REJECTED_VALUE_CHARACTERS).alias("value"),
    )
    return _row_value(row, REJECT_COLUMNS[:-1])
