"""The stream of a generation: every record is remembered and, in Real-Time Mode, answered."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column as Expr
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.internal import InternalFunction
from pyspark.sql.streaming.readwriter import DataStreamWriter

from liveboard.contract.board import Board, History, Join
from liveboard.contract.names import REPAIRS
from liveboard.pipeline.aggregates import UNTIL, accumulated, group_row, with_clock
from liveboard.pipeline.joins import SIDES, Side, SideName
from liveboard.pipeline.kept import kept
from liveboard.pipeline.memory import Memory, board_groupings, depths, memories
from liveboard.pipeline.plan import Plan
from liveboard.pipeline.route import entries, own_row
from liveboard.pipeline.rows import Target, addressed, change, position

# To be raised with every change of what is remembered: checkpoints of another format are built anew.
STATE_FORMAT = 5
# The name under which the stream's progress tells how many tombstones it skipped.
TOMBSTONES = "tombstones"


def remembering(spark: SparkSession, plan: Plan, checkpoint: str) -> DataStreamWriter:
    """Remembers what the topics hold now, writes nothing, and ends; started again, does what it was stopped in."""
    records = spark.readStream.format("kafka").options(**plan.remembering()).load()
    known = _known(records.coalesce(plan.readers), plan)
    return (
        known.writeStream.format("noop")
        .option("checkpointLocation", checkpoint)
        .queryName(f"{plan.generation}-remember")
        .outputMode("update")
        .trigger(once=True)
    )


def following(spark: SparkSession, plan: Plan, checkpoint: str, interval: str) -> DataStreamWriter:
    """Goes on from there, for ever: answers each record with all the rows that it adds or corrects."""
    known = _known(spark.readStream.format("kafka").options(**plan.following()).load(), plan)
    answers = known.select(F.explode(changes(plan.board.shape)).alias("change")).select("change.*")
    return (  # type: ignore[no-any-return]
        addressed(answers, plan)
        .writeStream.format("kafka")
        .options(**plan.writing(in_bulk=False))
        .option("checkpointLocation", checkpoint)
        .queryName(f"{plan.generation}-follow")
        .outputMode("update")
        .trigger(realTime=interval)  # type: ignore[call-overload]
    )


def target(memory: Memory, join: Join) -> Target:
    """Where the rows of a join go."""
    left, right = memory.side(join.left), memory.side(join.right)
    absent = ",null" * len(memory.other_columns(right))
    return Target(join.name, absent, memory.is_by_key(left), memory.is_by_key(right))


def _known(records: DataFrame, plan: Plan) -> DataFrame:
    """What is remembered of every key after each record, and the record.

    The columns must be the same for both streams, and each must be used by both: Spark leaves out of the state what a
    query does not use, and the streams share a checkpoint.
    """
    records = records.observe(TOMBSTONES, F.count_if(_is_skipped(plan.board)).alias("count"))
    # The key first: Spark sorts by it, and compares the first bytes of the first column before it looks at whole rows.
    found, grouped = entries(records, plan.board, plan.schemas), board_groupings(plan.board)
    ends = [UNTIL] if UNTIL in found.columns else []
    by_key = with_clock(found, grouped).groupBy("key", "place", "memory", *ends)
    return by_key.agg(F.last(F.struct("side", "origin", "cut", "record")).alias("came"), *remembered(plan.board.shape))


def _is_skipped(board: Board) -> Expr:
    """Whether the record is a tombstone that removes nothing."""
    without_value = F.col("value").isNull()
    by_key = [source.topic for source in board.sources.values() if source.by_key]
    return without_value & ~F.col("topic").isin(by_key) if by_key else without_value


@kept
def remembered(board: Board) -> list[Expr]:
    """What is kept of all entries of a key, as aggregates."""
    board_memories = memories(board)
    of_joins = [column for side in SIDES for column in _of_side(board_memories, side)]
    return [*of_joins, *accumulated(board_groupings(board))]


def _of_side(board_memories: Sequence[Memory], side: SideName) -> list[Expr]:
    """The columns in which memories hold a side.

    Its newest records to each depth, how many there were, and the one that counts of a table by key.
    """
    mine = F.col("place").isNull() & (F.col("side") == side)
    columns = [
        _newest(F.when(mine & F.col("memory").isin(ids), F.col("record")), depth).alias(_column(side, depth))
        for depth, ids in depths(board_memories, side).items()
    ]
    if any(memory.counts(side) for memory in board_memories):
        columns.append(F.count_if(mine).alias(_count(side)))
    if any(memory.is_by_key(side) for memory in board_memories):
        # Not its columns by themselves: a removal has no body, and would leave the one before.
        position = F.struct("record.partition", "record.offset")
        columns.append(F.max_by(F.when(mine, F.col("record")), F.when(mine, position)).alias(_counting(side)))
    return columns


def _newest(record: Expr, depth: History) -> Expr:
    return F.collect_list(record) if depth == "all" else InternalFunction.collect_top_k(record, depth, False)


def _column(side: SideName, depth: History) -> str:
    return f"{side}_{depth}"


def _count(side: SideName) -> str:
    return f"{side}_count"


def _counting(side: SideName) -> str:
    return f"{side}_by_key"


@kept
def changes(board: Board) -> Expr:
    """The record's own row, what it adds to the joins or corrects there, what it asks for, its groups: an array.

    It is made from the columns `came` (the entry that is answered) and `remembered`.
    """
    came = {name: F.col("came")[name] for name in ("record", "cut", "origin")}
    place = F.concat(F.col("place"), F.lit("-"), came["record"]["offset"].cast("string"))
    row = own_row(board, F.col("key"), **came, place=place, counts=_came_counts(board))
    own = F.when(row.isNotNull(), F.array(row)).otherwise(_none())
    of_joins = [
        F.when(F.col("memory") == memory.id, F.concat(*_answers(memory))) for memory in memories(board) if memory.joins
    ]
    of_groups = [
        F.when(F.col("memory") == grouping.id, F.array(group_row(grouping))) for grouping in board_groupings(board)
    ]
    return F.concat(own, F.coalesce(*of_joins, *of_groups, _none()))


def _answers(memory: Memory) -> list[Expr]:
    answers = [
        memory.kind(join).answer(target(memory, join), _side(memory, join, "left"), _side(memory, join, "right"))
        for join in memory.joins
    ]
    rows = [F.coalesce(answer.rows, _none()) for answer in answers]
    if memory.history == "all":
        return rows
    asks = F.coalesce(F.greatest(*[answer.asks for answer in answers], F.lit(False)), F.lit(False))
    return [*rows, F.when(asks, F.array(_asking())).otherwise(_none())]


def _side(memory: Memory, join: Join, name: SideName) -> Side:
    """What the memory knows of the join's left or right source."""
    side = memory.side(join.left if name == "left" else join.right)
    depth = memory.depth(side)
    came = F.when(F.col("came.side") == side, F.col("came.record"))
    if depth is None or (memory.is_by_key(side) and not memory.takes_versions(join, side)):
        counting = F.col(_counting(side))
        records = F.when(counting.isNotNull(), F.array(counting)).otherwise(F.slice(F.array(counting), 1, 0))
        return Side(records, F.lit(False), F.when(_is_at(counting), came))
    forgot = F.col(_count(side)) > depth if memory.counts(side) else F.lit(False)
    return Side(F.col(_column(side, depth)), forgot, came)


def _came_counts(board: Board) -> Expr:
    """Whether the record that came is the one that counts of its key, in a table by key."""
    sides = [side for side in SIDES if any(memory.is_by_key(side) for memory in memories(board))]
    counts = [F.when(F.col("came.side") == side, _is_at(F.col(_counting(side)))) for side in sides]
    return F.coalesce(*counts, F.lit(False))


def _is_at(counting: Expr) -> Expr:
    came = F.col("came.record")
    return (came["partition"] == counting["partition"]) & (came["offset"] == counting["offset"])


def _asking() -> Expr:
    """Who asks for a repair: the record in the key (memory, side, position), its join key in the value."""
    who = F.concat_ws(" ", F.col("memory"), F.col("came.side"), position(F.col("came.record")))
    return change(REPAIRS, who, F.col("key"))


def _none() -> Expr:
    return F.array().cast("array<struct<table:string,key:string,value:string>>")
