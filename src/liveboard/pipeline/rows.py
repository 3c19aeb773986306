"""Rows as changelog records: struct(table, key, value); the topic is known when they are written (`addressed`).

Every row is a whole row under a key made from the positions of its source records, or from the key of its table, so
writing it again changes nothing. A row without a value is a removal.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column as Expr
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from liveboard.contract.changelog import BY_KEY
from liveboard.pipeline.plan import Plan


@dataclass(frozen=True)
class Target:
    """Makes the rows of one joined table."""

    table: str
    absent: str
    """What stands for the right columns where nothing matches."""
    left_by_key: bool = False
    right_by_key: bool = False

    def row(self, key: Expr, left: Expr, right: Expr) -> Expr:
        """The row of a left record, with the right record's columns or nulls; its removal if that is what left says."""
        return self._change(self._left_key(key, left), key, left, F.coalesce(right["body"], F.lit(self.absent)))

    def pair(self, key: Expr, left: Expr, right: Expr) -> Expr:
        """The row of two records that belong together; its removal if one of them says so."""
        row_key = self._left_key(key, left)
        if not self.right_by_key:
            row_key = F.concat(row_key, F.lit(":"), position(right))
        return self._change(row_key, key, left, right["body"])

    def _left_key(self, key: Expr, left: Expr) -> Expr:
        return key_of_row(key) if self.left_by_key else position(left)

    def _change(self, row_key: Expr, key: Expr, left: Expr, right_body: Expr) -> Expr:
        value = F.concat(F.lit("["), key, left["body"], right_body, F.lit(',"'), left["ts"], F.lit('"]'))
        return change(self.table, row_key, value)


def position(record: Expr) -> Expr:
    """The record's place in its topic, as part of row keys."""
    return F.concat(record["partition"].cast("string"), F.lit("-"), record["offset"].cast("string"))


def key_of_row(key: Expr) -> Expr:
    """The row key in a table by key: the JSON texts of the key's columns."""
    return F.concat(F.lit(BY_KEY), key)


def change(table: str, key: Expr, value: Expr) -> Expr:
    """A record of the table's changelog."""
    return F.struct(F.lit(table).alias("table"), key.alias("key"), value.alias("value"))


def addressed(changes: DataFrame, plan: Plan) -> DataFrame:
    """Changes as Kafka takes them: to the topics of this generation."""
    return changes.select(F.concat(F.lit(plan.changelog("")), "table").alias("topic"), "key", "value")
