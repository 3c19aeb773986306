"""Values as Debezium writes them: what happened to a row of a database, `{"op": "u", "before": …, "after": …}`.

The columns are those of `after`, and their paths begin there. What the JSON converter of Kafka Connect puts around it
(`{"schema": …, "payload": …}`) may be there or not.
"""

from __future__ import annotations

from pyspark.sql import Column as Expr
from pyspark.sql import functions as F

from liveboard.contract.schema import Column
from liveboard.pipeline.fields import exact
from liveboard.pipeline.formats import Rule, shown
from liveboard.pipeline.json_format import JsonFormat
from liveboard.pipeline.shape import VARIANT, variant_at

_WRITES = ("c", "r", "u")
_REMOVES = "d"


class DebeziumFormat(JsonFormat):
    """Changes of rows; a deletion removes the row that `before` or the Kafka key tells."""

    def has_row(self) -> Expr:
        """Whether it is a change that leaves a row."""
        return self._op().isin(*_WRITES) & super().has_row()

    def unreadable(self) -> list[Rule]:
        """Values that are no change of a row."""
        op = self._op()
        known = F.coalesce(op.isin(*_WRITES, _REMOVES), F.lit(False))
        no_row = F.coalesce(op.isin(*_WRITES) & ~super().has_row(), F.lit(False))
        return [
            *self.no_document(),
            Rule(
                ~known,
                lambda: F.concat(F.lit("op: expected c, r, u or d, found "), F.coalesce(shown(op), F.lit("none"))),
            ),
            Rule(no_row, lambda: F.concat(F.lit("after: expected an object, since op is "), op, F.lit(", found none"))),
        ]

    def removes(self) -> Expr | None:
        """Whether the row was deleted."""
        return self._op() == _REMOVES

    def removed(self, column: Column) -> Expr | None:
        """What `before` has for the column: databases that keep no more have at least the key there."""
        return exact(variant_at(_part(self.first, "before"), column.steps), column)

    def _document_type(self, row: str) -> str:
        change = f"op string, before {VARIANT}, after {row}"
        return f"struct<{change}, payload struct<{change}>>"

    def _row_of(self, look: Expr) -> Expr:
        return _part(look, "after")

    def _op(self) -> Expr:
        return _part(self.first, "op")


def _part(look: Expr, name: str) -> Expr:
    change, payload = look["row"], look["row"]["payload"]
    return F.when(payload.isNotNull(), payload[name]).otherwise(change[name])
