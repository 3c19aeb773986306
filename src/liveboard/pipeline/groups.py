"""Which joins share their memory, and which records each of them needs to see."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column as Expr
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from liveboard.config import Board, Join, Source
from liveboard.contract.schema import Column
from liveboard.pipeline.encode import json_members, json_value
from liveboard.pipeline.joins import SIDES, SideName, position
from liveboard.pipeline.parse import row_column


@dataclass(frozen=True)
class Group:
    """Joins over the same two sources, key and salt: one memory per key serves them all."""

    id: int
    a: Source
    b: Source
    on: str
    salt: int
    joins: tuple[Join, ...]

    @property
    def only_newest_b(self) -> bool:
        """Whether no join asks for older records of b, so that only the newest need be remembered."""
        return all(join.how == "left" and join.left == self.a.name for join in self.joins)

    def side(self, source: str) -> SideName:
        """Which side of the group the source is."""
        return "a" if source == self.a.name else "b"

    def source(self, side: SideName) -> Source:
        """The source of that side."""
        return self.a if side == "a" else self.b

    def other_columns(self, side: SideName) -> list[Column]:
        """The columns of that side's source apart from the key."""
        return [column for column in self.source(side).columns if column.name != self.on]

    def keeps_null_keys(self, side: SideName) -> bool:
        """Whether a record of that side without a key has a row of its own in some join."""
        return any(join.left == self.source(side).name and join.how != "inner" for join in self.joins)


def groups(board: Board) -> list[Group]:
    """The board's joins, gathered by what they can share."""
    gathered: dict[tuple[object, ...], list[Join]] = {}
    for join in board.joins.values():
        # A salt spreads the driving side of its join, so salted joins share only with joins of the same direction.
        pair = (join.left, join.right) if join.salt > 1 else tuple(sorted((join.left, join.right)))
        gathered.setdefault((pair, join.on, join.salt), []).append(join)
    return [
        Group(
            id=index,
            a=board.sources[joins[0].left],
            b=board.sources[joins[0].right],
            on=joins[0].on,
            salt=joins[0].salt,
            joins=tuple(joins),
        )
        for index, joins in enumerate(gathered.values())
    ]


def route(parsed: DataFrame, board_groups: Sequence[Group]) -> DataFrame:
    """Every good record, once per memory that it belongs to, with the columns that `joins.remember` takes."""
    sides = [(group, side) for group in board_groups for side in SIDES]
    # A projection of its own: with a salt, the arrays below are interpreted for every record.
    remembered = parsed.select(
        "partition", "offset", *[_remembered(group, side).alias(_column(group, side)) for group, side in sides]
    )
    by_source: dict[str, list[Expr]] = {}
    for group, side in sides:
        by_source.setdefault(group.source(side).name, []).append(_entries(group, side))
    entries = F.coalesce(*[F.concat(*of_source) for of_source in by_source.values()])
    return remembered.select(F.explode(entries).alias("entry")).select("entry.*")


def _column(group: Group, side: SideName) -> str:
    return f"{side}{group.id}"


def _remembered(group: Group, side: SideName) -> Expr:
    """What the group keeps of a record of that side: null for records of other sources."""
    row = F.col(row_column(group.source(side)))
    type_ = next(column.type for column in group.source(side).columns if column.name == group.on)
    record = F.struct("ts", "partition", "offset", json_members(row, group.other_columns(side)).alias("body"))
    key = json_value(row[group.on], type_)
    has_key = row[group.on].isNotNull()
    kept = F.struct(key.alias("key"), has_key.alias("has_key"), record.alias("record"))
    return F.when(row.isNotNull(), kept)


def _entries(group: Group, side: SideName) -> Expr:
    """One entry for every memory of its key that the record goes to; null for records of other sources."""
    kept = F.col(_column(group, side))
    here = position(F.struct("partition", "offset"))

    def entry(shard: Expr) -> Expr:
        return F.struct(
            F.lit(group.id).alias("group"),
            kept["key"].alias("key"),
            shard.alias("shard"),
            F.lit(side).alias("side"),
            F.lit(side == "b" and group.only_newest_b).alias("only_newest"),
            kept["record"].alias("record"),
        )

    if group.salt == 1:
        entries = F.array(entry(F.lit("")))
    elif side == "a":
        entries = F.array(entry(F.pmod(F.hash(here), F.lit(group.salt)).cast("string")))
    else:
        shards = F.array(*[F.lit(str(shard)) for shard in range(group.salt)])
        entries = F.transform(shards, entry)
    # Null matches nothing: such a record is alone in a memory of its own, or of no use.
    alone = F.array(entry(F.concat(F.lit(f"{side}:"), here)))
    # An empty slice, where a filter would do: Spark generates no code for a projection with a lambda in it.
    without_key = alone if group.keeps_null_keys(side) else F.slice(alone, 1, 0)
    return F.when(kept.isNotNull(), F.when(kept["has_key"], entries).otherwise(without_key))
