"""The batch job over the topics' history: builds all tables, or repairs the rows that a memory could not answer.

A build is a repair for which every record asks and none is remembered.
"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column as Expr
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from liveboard.contract.board import Board, Join
from liveboard.kafka.admin import Offsets, total
from liveboard.pipeline.aggregates import UNTIL, VALUES, rows_of_groups
from liveboard.pipeline.follow import target
from liveboard.pipeline.joins import SIDES, MatchingKind, PairingKind, SideName, any_asked, newest_position
from liveboard.pipeline.kept import kept
from liveboard.pipeline.memory import Memory, board_groupings, memories
from liveboard.pipeline.plan import Plan
from liveboard.pipeline.route import entries, own_row
from liveboard.pipeline.rows import addressed

# What a repair writes has this header, so that it can be told from what the stream writes.
REPAIR_HEADER = "repair"
_ANY_ASKED = "any_asked"
# A part of so many records is sorted in memory. A larger one is written to disk in pieces, and the buffers through
# which they are read back have no bound: with 5,000,000 records in a few parts they filled the heap.
_RECORDS_A_PART = 60_000


def build(spark: SparkSession, plan: Plan, end: Offsets) -> None:
    """Writes every row of every table, as of these end offsets, to the changelogs."""
    records = total(end) - total(plan.starting_offsets)
    _write(flagged(_entries(spark, plan, end)), plan, own_rows=True, records=records)


def repair(
    spark: SparkSession, plan: Plan, end: Offsets, asking: tuple[int, int], *, overtaken: Offsets | None = None
) -> None:
    """Writes the joined rows that the records between these offsets of the repairs topic asked for.

    `overtaken` are the ends of a repair that perhaps wrote rows over newer ones.
    """
    start, stop = ({plan.repairs: {"0": offset}} for offset in asking)
    asks = spark.read.format("kafka").options(**plan.between(start, stop)).load()
    found = asked_for(_entries(spark, plan, end), asks.select("key", "value"), plan, overtaken)
    _write(found, plan, own_rows=False, again=overtaken is not None, header=REPAIR_HEADER)


def asked_for(found: DataFrame, asks: DataFrame, plan: Plan, overtaken: Offsets | None = None) -> DataFrame:
    """The entries of the keys that are asked for by these records of the repairs topic, flagged."""
    who = F.split(F.col("key").cast("string"), "[ -]")
    asks = asks.select(
        who[0].cast("int").alias("memory"),
        who[1].alias("side"),
        who[2].cast("int").alias("partition"),
        who[3].cast("long").alias("offset"),
        F.col("value").cast("string").alias("key"),
    ).distinct()
    keys = F.broadcast(asks.select("memory", "key").distinct())
    of_keys = found.where(F.col("place").isNull()).join(keys, ["memory", "key"], "left_semi")
    askers = asks.select("memory", "side", F.struct("partition", "offset").alias("who"), F.lit(True).alias("asked"))
    at = F.struct("record.partition", "record.offset")
    marked = of_keys.withColumn("who", at).join(F.broadcast(askers), ["memory", "side", "who"], "left")
    read_before = None if overtaken is None else _is_below(plan, overtaken)
    return flagged(marked, F.col("asked").isNotNull(), _remembered(plan), read_before)


def _is_below(plan: Plan, ends: Offsets) -> Expr:
    """Whether the record is before these ends of its topic."""
    below = [
        F.when(
            (F.col("memory") == memory.id) & (F.col("side") == side) & (F.col("record.partition") == int(partition)),
            F.col("record.offset") < end,
        )
        for memory in memories(plan.board)
        for side in SIDES
        if (source := memory.source(side))
        for partition, end in ends.get(source.topic, {}).items()
    ]
    return F.coalesce(*below, F.lit(False))


def _entries(spark: SparkSession, plan: Plan, end: Offsets) -> DataFrame:
    records = spark.read.format("kafka").options(**plan.between(plan.starting_offsets, end)).load()
    records = records.coalesce(plan.readers)
    return apart(entries(records, plan.board, plan.schemas))


def apart(found: DataFrame) -> DataFrame:
    """Gives each entry that nobody remembers a place of its own: together they would be the longest key."""
    alone = F.concat(F.col("place"), F.lit("-"), F.col("record.offset").cast("string"))
    return found.withColumn("place", alone)


def flagged(
    found: DataFrame, asked: Expr | None = None, remembered: Expr | None = None, read_before: Expr | None = None
) -> DataFrame:
    """Entries whose records say whether they asked (or else all did) and are still remembered (or else none is).

    `known` says whether the stream knows the newest ones, which it never forgets. `read_before` is there in a repair
    that is made again, and says whether the one before had read the record.
    """
    known = F.lit(remembered is not None)
    asked = F.lit(True) if asked is None else asked
    remembered = F.lit(False) if remembered is None else remembered
    of_repair = {} if read_before is None else {"read_before": read_before}
    flags = found.withColumns({"asked": asked, "remembered": remembered, **of_repair})
    parts = [F.col("record")[name].alias(name) for name in ("ts", "partition", "offset", "body")]
    record = F.struct(*parts, "asked", "remembered", known.alias("known"), *of_repair)
    of_groups = [name for name in (VALUES, UNTIL) if name in found.columns]
    return flags.select("memory", "key", "place", "side", "origin", "cut", record.alias("record"), *of_groups)


def _remembered(plan: Plan) -> Expr:
    """Whether the record is among the newest of its key, whose rows the stream writes itself."""
    newest_first = [F.col("record")[name].desc() for name in ("ts", "partition", "offset")]
    rank = F.row_number().over(Window.partitionBy("memory", "key", "side").orderBy(*newest_first))
    depths = [
        F.when((F.col("memory") == memory.id) & (F.col("side") == side), rank <= depth)
        for memory in memories(plan.board)
        if memory.history != "all"
        for side in SIDES
        if (depth := memory.depth(side)) is not None
    ]
    return F.coalesce(*depths, F.lit(True))


def rows(found: DataFrame, plan: Plan, *, own_rows: bool, again: bool = False, records: int = 0) -> DataFrame:
    """The changes of all joins and, if wanted, of the records' own rows and of the aggregates.

    `records` is how many there are, where there may be many.

    A repair that is made again also has all as-of rows that the one before can have written: where a record that asked
    was put into a row, there may by now be another one, which has not asked. It has no others. The stream writes those
    at this moment, and some of them from records that this repair has not read.
    """
    grouped = board_groupings(plan.board)
    changes = [rows_of_groups(found, grouped)] if grouped and own_rows else []
    if grouped:
        found = found.where(F.col("memory") < grouped[0].id).drop(VALUES, UNTIL)
    # More than are written at once, so that long keys even out.
    parts = max(2 * plan.writers, records // _RECORDS_A_PART)
    changes += [_paired_rows(found, parts, *pairing) for pairing in _pairing(plan.board)]
    if own_rows or _matching(plan.board):
        changes.append(_own_and_matched_rows(found, parts, plan.board.shape, own_rows, again))
    return reduce(DataFrame.union, changes)


def _write(
    found: DataFrame, plan: Plan, *, own_rows: bool, again: bool = False, header: str = "", records: int = 0
) -> None:
    if _pairing(plan.board):
        # Every pairing reads both of its sides from it, and records are parsed once.
        found.persist()
    changes = addressed(rows(found, plan, own_rows=own_rows, again=again, records=records), plan)
    if header:
        headers = F.array(F.struct(F.lit(header).alias("key"), F.lit(b"").alias("value")))
        changes = changes.withColumn("headers", headers)
    try:
        # A task has one part after the other, so that few are in memory at once.
        changes.coalesce(plan.writers).write.format("kafka").options(**plan.writing(in_bulk=True)).save()
    finally:
        found.unpersist()


def _joins(board: Board) -> list[tuple[Memory, Join]]:
    return [(memory, join) for memory in memories(board) for join in memory.joins]


def _matching(board: Board) -> list[tuple[Memory, Join, MatchingKind]]:
    """The joins that find one match for a record."""
    return [(m, join, kind) for m, join in _joins(board) if isinstance(kind := m.kind(join), MatchingKind)]


def _pairing(board: Board) -> list[tuple[Memory, Join, PairingKind]]:
    """The joins that pair a left record with every right one."""
    return [(m, join, kind) for m, join in _joins(board) if isinstance(kind := m.kind(join), PairingKind)]


def _own_and_matched_rows(found: DataFrame, parts: int, shape: Board, own_rows: bool, again: bool) -> DataFrame:
    """One pass over the sorted records of every key."""
    sorted_by_key = found.repartition(parts, "key", "place", "memory")
    with_matches = sorted_by_key.withColumns(_matches(shape, again))
    exploded = with_matches.select(F.explode(_changes(shape, own_rows, again)).alias("change"))
    return exploded.where(F.col("change").isNotNull()).select("change.*")


@kept
def _matches(board: Board, again: bool) -> dict[str, Expr]:
    """What the rows of a record need to know of the other records of its key, by column."""
    columns = {_match_column(*each): _match(*each) for each in _matching(board)}
    columns |= {_counting(side): newest_position(side) for side in _sides_by_key(board)}
    return columns | ({_ANY_ASKED: any_asked()} if _sides_by_key(board) or again else {})


@kept
def _changes(board: Board, own_rows: bool, again: bool) -> Expr:
    """The rows of a record in all joins and, if wanted, its own: an array, with nulls where there is none."""
    changes = [_matched_row(memory, join, kind, again) for memory, join, kind in _matching(board)]
    if own_rows:
        counts = [F.when(F.col("side") == side, _counts(side)) for side in _sides_by_key(board)]
        entry = {name: F.col(name) for name in ("key", "record", "cut", "origin", "place")}
        changes.append(own_row(board, **entry, counts=F.coalesce(*counts, F.lit(False))))
    return F.array(*changes)


def _sides_by_key(board: Board) -> list[SideName]:
    return [side for side in SIDES if any(memory.is_by_key(side) for memory in memories(board))]


def _counting(side: SideName) -> str:
    return f"{side}_by_key"


def _counts(side: SideName) -> Expr:
    """Whether the record is the one of its side that counts, in a table by key."""
    return F.struct("record.partition", "record.offset") == F.col(_counting(side))


def _sides(memory: Memory, join: Join, kind: MatchingKind) -> tuple[SideName, SideName]:
    """What the memory calls the driving side and the other one."""
    left, right = memory.side(join.left), memory.side(join.right)
    return (left, right) if kind.drives == "left" else (right, left)


def _match(memory: Memory, join: Join, kind: MatchingKind) -> Expr:
    _, other = _sides(memory, join, kind)
    return kind.match(other, memory.is_by_key(other))


def _match_column(memory: Memory, join: Join, kind: MatchingKind) -> str:
    _, other = _sides(memory, join, kind)
    return f"{join.how}_{other}" + ("_by_key" if memory.is_by_key(other) else "")


def _matched_row(memory: Memory, join: Join, kind: MatchingKind, again: bool) -> Expr:
    """The row of a driving record of the join; null for any other record."""
    record, match = F.col("record"), F.col(_match_column(memory, join, kind))
    driving, _ = _sides(memory, join, kind)
    mine = (F.col("memory") == memory.id) & (F.col("side") == driving)
    if memory.is_by_key(driving):
        mine &= _counts(driving)
    row = kind.row(target(memory, join), F.col("key"), record, match)
    return F.when(mine & _matched_wanted(memory, join, kind, again), row)


def _matched_wanted(memory: Memory, join: Join, kind: MatchingKind, again: bool) -> Expr:
    """Whether the row is for the build or the repair to write."""
    record, match = F.col("record"), F.col(_match_column(memory, join, kind))
    driving, other = _sides(memory, join, kind)
    if kind.matches_in_time and memory.is_by_key(driving):
        # The key has one row for all its records, and the one that asked may no longer be in it.
        return F.col(_ANY_ASKED)
    driving_flag = "known" if memory.is_by_key(driving) else "remembered"
    match_flag = "known" if memory.is_by_key(other) and not kind.matches_in_time else "remembered"
    absent = F.lit(False) if kind.matches_in_time else record["known"]
    wanted = _wanted(record, match, record[driving_flag], F.coalesce(match[match_flag], absent))
    # When a row is repaired again, the one that asked may no longer be in it.
    return wanted | (F.col(_ANY_ASKED) & record["read_before"]) if kind.matches_in_time and again else wanted


def _paired_rows(found: DataFrame, parts: int, memory: Memory, join: Join, kind: PairingKind) -> DataFrame:
    """A row for every left record with every right one."""
    remembered = found.where((F.col("memory") == memory.id) & F.col("place").isNull())
    left, right = (
        remembered.where(F.col("side") == memory.side(source)).repartition(parts, "key")
        for source in (join.left, join.right)
    )
    pair = target(memory, join).pair(F.col("key"), F.col("left"), F.col("right"))
    one, other = F.col("left"), F.col("right")
    wanted = kind.pairs(left, right).where(_wanted(one, other, one["remembered"], other["remembered"]))
    return wanted.select(pair.alias("change")).select("change.*")


def _wanted(record: Expr, match: Expr, record_known: Expr, match_known: Expr) -> Expr:
    """Whether one of the two has asked and one is no longer remembered; the stream writes all other rows itself."""
    asked = record["asked"] | F.coalesce(match["asked"], F.lit(False))
    return asked & ~(record_known & match_known)
