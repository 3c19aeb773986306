"""The three joins.

Both sources of a join arrive in one stream. One aggregation remembers, per key, the records that came (`remember`);
in Real-Time Mode it answers every single record with what it now knows of that record's key, and a join turns that
answer into the rows which the record adds or corrects (`left`, `inner`, `asof`). Each emitted row is a whole row
under a key made from source positions, so emitting it again changes nothing.

A record is struct(ts, partition, offset, body): records compare by time, then position. `body` is the JSON text of the
columns other than the key, ready to be spliced into rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from pyspark.sql import Column as Expr
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

SideName = Literal["a", "b"]
SIDES: tuple[SideName, SideName] = ("a", "b")


@dataclass(frozen=True)
class Side:
    """What is known of one source's records of a key."""

    records: Expr
    """All of them, or none where only the newest is remembered."""
    newest: Expr
    """The one that compares highest, null while there is none."""
    came: Expr
    """The record being answered if it is of this side, else null; null on both sides means: answer everything."""
    absent: str
    """The body that stands in where no record matches."""

    def to_answer(self) -> Expr:
        """The records of this side that the answer is about: the one that came, or all for one of the other side."""
        return F.when(self.came.isNotNull(), F.array(self.came)).otherwise(self.records)


@dataclass(frozen=True)
class Target:
    """Makes the changelog records of one joined table for one key."""

    topic: str
    key: Expr
    """The JSON text of the join key."""

    def row(self, driver: Expr, other: Expr, absent: str) -> Expr:
        """The row of a driving record, with the other record's columns or nulls."""
        return self._change(position(driver), driver, F.coalesce(other["body"], F.lit(absent)))

    def pair(self, driver: Expr, other: Expr) -> Expr:
        """The row of two records that belong together."""
        return self._change(F.concat(position(driver), F.lit(":"), position(other)), driver, other["body"])

    def _change(self, row_key: Expr, driver: Expr, other_body: Expr) -> Expr:
        value = F.concat(F.lit("["), self.key, driver["body"], other_body, F.lit(',"'), driver["ts"], F.lit('"]'))
        return F.struct(F.lit(self.topic).alias("topic"), row_key.alias("key"), value.alias("value"))


def left(target: Target, drivers: Side, others: Side) -> Expr:
    """Every driving record with the newest other record."""
    return F.transform(drivers.to_answer(), lambda driver: target.row(driver, others.newest, others.absent))


def inner(target: Target, drivers: Side, others: Side) -> Expr:
    """Every pair of a driving and another record."""
    pairs = F.transform(
        drivers.to_answer(),
        lambda driver: F.transform(others.to_answer(), lambda other: target.pair(driver, other)),
    )
    return F.flatten(pairs)


def asof(target: Target, drivers: Side, others: Side) -> Expr:
    """Every driving record with the newest other record that is not after it.

    A record of the other side corrects the driving records from its own time up to the next other record's.
    """
    later = F.array_min(F.filter(others.records, lambda other: other > others.came))
    corrected = F.filter(
        drivers.to_answer(),
        lambda driver: (
            others.came.isNull()
            | ((driver["ts"] >= others.came["ts"]) & (later.isNull() | (driver["ts"] < later["ts"])))
        ),
    )

    def match(driver: Expr) -> Expr:
        return F.array_max(F.filter(others.records, lambda other: other["ts"] <= driver["ts"]))

    return F.transform(corrected, lambda driver: target.row(driver, match(driver), others.absent))


JOINS: dict[str, Callable[[Target, Side, Side], Expr]] = {"left": left, "inner": inner, "asof": asof}


def remember(records: DataFrame) -> DataFrame:
    """What is known of every (group, key, shard) after each record: the state that all joins are made from.

    Takes columns `group`, `key`, `shard`, `side` ("a" or "b"), `only_newest` and `record`.
    """
    is_a, keep_all = F.col("side") == "a", ~F.col("only_newest")
    # The key first: builds sort, and Spark compares the first bytes of the first column before it looks at whole rows.
    return records.groupBy("key", "shard", "group").agg(
        F.collect_list(F.when(is_a, F.col("record"))).alias("a_records"),
        F.collect_list(F.when(~is_a & keep_all, F.col("record"))).alias("b_records"),
        F.max(F.when(~is_a & ~keep_all, F.col("record"))).alias("b_newest"),
        F.last(F.struct("side", "record")).alias("came"),
    )


def side(name: SideName, absent: str, *, everything: bool) -> Side:
    """One side of the remembered state, to answer the record that came or, with `everything`, the whole key."""
    records = F.col(f"{name}_records")
    newest = F.array_max(records)
    if name == "b":
        newest = F.coalesce(F.col("b_newest"), newest)
    came = F.when(F.lit(not everything) & (F.col("came.side") == name), F.col("came.record"))
    return Side(records, newest, came, absent)


def position(record: Expr) -> Expr:
    """The record's place in its topic, as part of row keys."""
    return F.concat(record["partition"].cast("string"), F.lit("-"), record["offset"].cast("string"))
