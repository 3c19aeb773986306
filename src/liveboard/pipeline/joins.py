"""The three joins, each in two forms that give the same rows.

| join  | has a row for              | in which there is                                       | what matches nothing  |
|-------|----------------------------|---------------------------------------------------------|-----------------------|
| left  | every left record          | the newest right record of its key                      | has a row, with nulls |
| asof  | every left record          | the newest right record of its key that is not after it | has a row, with nulls |
| inner | every pair of a key        | a left record and a right record                        | has none              |

Left and right are as in the configuration: left drives, which means that it has the rows, and right enriches them. In
an inner join no side drives, unless one is a table by key: then the other one drives, and of two such tables the left
one. A record without a key matches nothing.

A side can be a table by key. Then only the newest record of the key counts, by position, and its body is null where it
removes the row. A left one has one row for the key. What was removed enriches nothing, and in an inner join takes its
rows away: there, every record of the other side has one row, with the key's row of this one. An as-of join looks into
the past: of its right side all records count, each from its time on.

- The window form is for the history, in a batch job. It sees all records of a key at once.
- The answering form is for the present, in Real-Time Mode. A record comes and is answered with the rows that it adds or
  corrects, from what is remembered of its key: the newest records of each side. An answer that may lack rows says so
  (`asks`). Then the key is repaired: the window form is run for it, and those rows are written of which one record
  asked and one is no longer remembered.

Both forms also give removals, which are rows without a value: a row that was there before may have to go.

A record is struct(ts, partition, offset, body): records compare by time, then position. `body` is the JSON text of the
columns other than the key, ready to be put into rows. In the window form, `asked`, `remembered` and `known` follow: the
last says that the stream knows all newest records.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Literal

from pyspark.sql import Column as Expr
from pyspark.sql import DataFrame, Window, WindowSpec
from pyspark.sql import functions as F

from liveboard.contract.joins import JOINS, JoinKind
from liveboard.pipeline.rows import Target

SideName = Literal["left", "right"]
SIDES: tuple[SideName, SideName] = ("left", "right")


@dataclass(frozen=True)
class Side:
    """What is remembered of the left or the right records of a key."""

    records: Expr
    """The newest of them; of a table by key, the one that counts."""
    forgot: Expr
    """Whether there were more that count."""
    came: Expr
    """The record being answered if it is of this side and counts, else null."""

    @property
    def newest(self) -> Expr:
        """Null while there is none."""
        return F.array_max(self.records)

    @property
    def oldest(self) -> Expr:
        """Of those that are remembered."""
        return F.array_min(self.records)


@dataclass(frozen=True)
class Answer:
    """What one record leads to."""

    rows: Expr
    """The rows that it adds or corrects, as far as they are certain."""
    asks: Expr
    """Whether there may be more, which a repair has to find."""


class Kind(ABC):
    """A kind of join."""

    name: JoinKind
    keeps_unmatched: bool
    """Whether a left record that matches nothing, or has no key, has a row; a right one never has."""
    remembers_right: Literal["newest", "history"]
    """Of the right records of a key only the newest, or as many as the join's history says, as of the left ones."""
    usual_history: int = 100
    """How many records of a key and side are remembered, unless the join says how many."""

    @property
    def matches_in_time(self) -> bool:
        """Whether the match depends on the left record's time, so that of a right table by key all records count."""
        return JOINS[self.name].matches_in_time

    @abstractmethod
    def answer(self, target: Target, left: Side, right: Side) -> Answer:
        """The answering form."""


class MatchingKind(Kind):
    """A join in which a record of the driving side, usually the left one, has one row or none."""

    drives: SideName = "left"

    @abstractmethod
    def match(self, other: SideName, by_key: bool) -> Expr:
        """The window form: the other side's record of a driving one, or null. `other` is what the memory calls it."""

    def row(self, target: Target, key: Expr, driving: Expr, match: Expr) -> Expr:
        """The row of a driving record, or null where it has none."""
        return target.row(key, driving, match)


class PairingKind(Kind):
    """A join in which a left record has a row with each right one."""

    @abstractmethod
    def pairs(self, left: DataFrame, right: DataFrame) -> DataFrame:
        """The window form: columns `key`, `left` and `right`, from the entries of both sides."""


class LeftJoin(MatchingKind):
    """A left record has the newest right record of its key."""

    name = "left"
    keeps_unmatched = True
    remembers_right = "newest"

    def match(self, other: SideName, by_key: bool) -> Expr:
        """The newest right record of the key."""
        return _newest(other, by_key)

    def answer(self, target: Target, left: Side, right: Side) -> Answer:
        """A left record gets the newest right one. A right record that is the newest goes into every left row."""
        key = F.col("key")
        its_row = F.array(target.row(key, left.came, right.newest))
        left_rows = F.transform(left.records, lambda each: target.row(key, each, right.came))
        newest_came = right.came >= right.newest
        return Answer(
            rows=F.when(left.came.isNotNull(), its_row).when(newest_came, left_rows),
            asks=newest_came & left.forgot,
        )


class AsofJoin(MatchingKind):
    """A left record has the newest right record of its key that is not after it in time."""

    name = "asof"
    keeps_unmatched = True
    remembers_right = "history"
    # Enough for records that come a moment late: others need one record of each side, and every record writes all that
    # its key remembers again.
    usual_history = 16

    def match(self, other: SideName, by_key: bool) -> Expr:
        """The last right record so far, in order of time; of those of one time, right records come first."""
        in_time = _of_key().orderBy("record.ts", F.col("side") != other, "record.partition", "record.offset")
        so_far = in_time.rowsBetween(Window.unboundedPreceding, Window.currentRow)
        return F.last(_only(other, F.col("record")), ignorenulls=True).over(so_far)

    def answer(self, target: Target, left: Side, right: Side) -> Answer:
        """A left record gets the newest right one that is not after it. A right record goes into the left rows from its
        own time up to that of the next right one.

        Forgotten records are older than all that are remembered. So a left record that finds no match among those may
        have a forgotten one, and a right record that is itself too old to be remembered may have a forgotten next one:
        neither is answered. Every other answer is certain, but left rows that were forgotten are missing from it.
        """
        key = F.col("key")
        match = F.array_max(F.filter(right.records, lambda each: each["ts"] <= left.came["ts"]))
        unmatched = match.isNull() & right.forgot & left.came["body"].isNotNull()
        its_row = F.when(~unmatched, F.array(target.row(key, left.came, match)))

        too_old = right.forgot & (right.came < right.oldest)
        following = F.array_min(F.filter(right.records, lambda each: each > right.came))
        until = F.coalesce(following["ts"], F.lit("~"))  # after every time
        corrected = F.filter(left.records, lambda each: (each["ts"] >= right.came["ts"]) & (each["ts"] < until))
        left_rows = F.when(~too_old, F.transform(corrected, lambda each: target.row(key, each, right.came)))
        reaches_back = left.forgot & (right.came["ts"] <= left.oldest["ts"])
        return Answer(
            rows=F.when(left.came.isNotNull(), its_row).otherwise(left_rows),
            asks=F.when(left.came.isNotNull(), unmatched).otherwise(too_old | reaches_back),
        )


class InnerJoin(PairingKind):
    """Every left record of a key is paired with every right one."""

    name = "inner"
    keeps_unmatched = False
    remembers_right = "history"

    def pairs(self, left: DataFrame, right: DataFrame) -> DataFrame:
        """An equi-join, since all pairs of one key may be more than memory holds."""
        lefts, rights = (
            side.select("key", F.col("record").alias(name)) for side, name in ((left, "left"), (right, "right"))
        )
        return lefts.join(rights, "key")

    def answer(self, target: Target, left: Side, right: Side) -> Answer:
        """A record is paired with every one of the other side."""
        key = F.col("key")
        with_right = F.transform(right.records, lambda each: target.pair(key, left.came, each))
        with_left = F.transform(left.records, lambda each: target.pair(key, each, right.came))
        return Answer(
            rows=F.when(left.came.isNotNull(), with_right).otherwise(with_left),
            asks=F.when(left.came.isNotNull(), right.forgot).otherwise(left.forgot),
        )


class InnerJoinByKey(MatchingKind):
    """An inner join with a table by key: a record of the other side, which drives, is paired with the key's row.

    Where both sides are tables by key, the left one drives.
    """

    name = "inner"
    keeps_unmatched = False
    remembers_right = "history"

    def __init__(self, drives: SideName) -> None:
        self.drives = drives

    def match(self, other: SideName, by_key: bool) -> Expr:
        """The record that counts of the key."""
        return _newest(other, by_key)

    def row(self, target: Target, key: Expr, driving: Expr, match: Expr) -> Expr:
        """The pair, or its removal where one of the two removes its row; null while the other side has had none."""
        left, right = (driving, match) if self.drives == "left" else (match, driving)
        return F.when(match.isNotNull(), target.pair(key, left, right))

    def answer(self, target: Target, left: Side, right: Side) -> Answer:
        """A driving record is paired with the key's row. A record that becomes the key's row goes into every pair."""
        key = F.col("key")
        driving, other = (left, right) if self.drives == "left" else (right, left)
        its_row = F.array(self.row(target, key, driving.came, other.newest))
        rows = F.transform(driving.records, lambda each: self.row(target, key, each, other.came))
        return Answer(
            rows=F.when(other.came.isNotNull(), rows).when(
                other.newest.isNotNull() & driving.came.isNotNull(), its_row
            ),
            asks=other.came.isNotNull() & driving.forgot,
        )


KINDS: dict[JoinKind, Kind] = {kind.name: kind for kind in (LeftJoin(), InnerJoin(), AsofJoin())}


def kind_of(how: JoinKind, left_by_key: bool, right_by_key: bool) -> Kind:
    """What a join does with sources of which one or both may be tables by key."""
    if how == "inner" and (left_by_key or right_by_key):
        return InnerJoinByKey("left" if right_by_key else "right")
    return KINDS[how]


def newest_position(side: SideName) -> Expr:
    """The window form: where the newest record of that side of the key is."""
    return F.max(_only(side, _position())).over(_of_key())


def any_asked() -> Expr:
    """The window form: whether a record of the key has asked."""
    return F.max(F.col("record.asked")).over(_of_key())


def _newest(side: SideName, by_key: bool) -> Expr:
    """The newest record of that side of the key. It stands for all of them: if one has asked, so has it."""
    record, asked = (_only(side, F.col(part)) for part in ("record", "record.asked"))
    newest = F.max_by(record, _only(side, _position())) if by_key else F.max(record)
    return newest.over(_of_key()).withField("asked", F.max(asked).over(_of_key()))


def _position() -> Expr:
    return F.struct("record.partition", "record.offset")


def _only(side: SideName, column: Expr) -> Expr:
    return F.when(F.col("side") == side, column)


def _of_key() -> WindowSpec:
    return Window.partitionBy("key", "place", "memory")
