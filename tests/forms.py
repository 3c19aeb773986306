"""Both forms of every join without Kafka: Spark answers a list of records, and the oracle says what is right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import oracle
from harness import Event, difference
from kafkaless import frame, kafka_frame
from oracle import Record, Table
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from liveboard.contract.board import Board
from liveboard.contract.changelog import decode_row
from liveboard.contract.names import REPAIRS, Names
from liveboard.contract.tables import table_columns
from liveboard.kafka.admin import Offsets
from liveboard.kafka.reader import Change
from liveboard.orchestrator.ending import Windows, keeping
from liveboard.pipeline.follow import changes, remembered
from liveboard.pipeline.history import apart, asked_for, flagged, rows
from liveboard.pipeline.plan import Plan
from liveboard.pipeline.route import entries


class Answered(NamedTuple):
    """What the records were answered with."""

    changes: list[Row]
    """In the order of the records, with the number of the record in `step`."""
    asks: list[Row]


def plan_of(board: Board) -> Plan:
    """The board, read from nowhere."""
    return Plan(Names(), "g1", board, {}, {})


def arrived(board: Board, events: Sequence[Event]) -> list[Record]:
    """The events as records, in the order in which they come; offsets have gaps, since they count all of them."""
    return [
        Record(
            board.sources[event.source].topic,
            event.partition,
            number,
            event.timestamp_ms,
            event.value,
            event.key,
            event.headers,
        )
        for number, event in enumerate(events)
    ]


def entries_of(spark: SparkSession, board: Board, records: Sequence[Record]) -> DataFrame:
    """What the pipeline makes of the records."""
    # Every record is looked up again for each that comes after it.
    return entries(kafka_frame(spark, records), board).cache()


def answer(found: DataFrame, plan: Plan) -> Answered:
    """The answering form: for each record, what its key remembers when it comes, and the answer."""
    step = F.col("record.offset")
    now = found.select(step.alias("step"), *(F.col(name).alias(f"{name}_now") for name in ("key", "place", "memory")))
    same = [F.col(f"{name}_now").eqNullSafe(F.col(name)) for name in ("key", "place", "memory")]
    so_far = now.distinct().join(found, [*same, step <= F.col("step")])
    came = F.max_by(F.struct("side", "origin", "cut", "record"), step).alias("came")
    known = so_far.groupBy("step", "key", "place", "memory").agg(came, *remembered(plan.board))
    found_changes = (
        known.select("step", F.explode(changes(plan.board.shape)).alias("change")).select("step", "change.*").collect()
    )
    in_order = sorted(found_changes, key=lambda change: int(change["step"]))
    asks = [change for change in in_order if change["table"] == REPAIRS]
    return Answered([change for change in in_order if change not in asks], asks)


def repaired(
    spark: SparkSession, found: DataFrame, plan: Plan, asks: Sequence[Row], overtaken: Offsets | None = None
) -> list[Row]:
    """The window form for the keys that are asked for; once more, where another had read so far."""
    if not asks:
        return []
    topic = frame(spark, [(ask["key"], ask["value"]) for ask in asks], "key string, value string")
    flagged_again = asked_for(apart(found), topic, plan, overtaken)
    return rows(flagged_again, plan, own_rows=False, again=overtaken is not None).collect()


def tables(plan: Plan, written: Sequence[Row]) -> dict[str, Table]:
    """What the changelogs hold when these have been written."""
    columns = table_columns(plan.board)
    newest = {(change["table"], change["key"]): change["value"] for change in written}
    found: dict[str, Table] = {name: {} for name in columns}
    for (table, key), value in newest.items():
        if value is not None:
            found[table][key] = decode_row(value.encode(), columns[table])
    return found


def check(plan: Plan, records: Sequence[Record], written: Sequence[Row]) -> None:
    """Compares every table with the oracle."""
    found = tables(plan, written)
    for name, expected in oracle.tables(plan.board, records).items():
        assert difference(name, found[name], expected) == ""


def check_both_forms_of(spark: SparkSession, plan: Plan, records: Sequence[Record]) -> None:
    """Compares what the records lead to with the oracle."""
    found = entries_of(spark, plan.board, records)
    check(plan, records, rows(flagged(apart(found)), plan, own_rows=True).collect())
    answered = answer(found, plan)
    written = [*answered.changes, *repaired(spark, found, plan, answered.asks)]
    check(plan, records, [*written, *ended(plan, written)])


def ended(plan: Plan, written: Sequence[Row]) -> list[Row]:
    """The removals of windows that are over."""
    windows = Windows(keeping(plan.board))
    kept = [change for change in written if change["table"] in keeping(plan.board)]
    windows.hear(Change(each["table"], each["key"].encode(), each["value"].encode(), 0) for each in kept)
    return [Row(table=table, key=key.decode(), value=None) for table, key in windows.ended()]
