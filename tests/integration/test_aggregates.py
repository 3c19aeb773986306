"""B40: expressions mean what Spark SQL means, and windows that have ended go from tables and from the state."""

from __future__ import annotations

import json
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

import boards
import pytest
from boards import FIRST_MS, with_suffix
from harness import Bench, Event, followed, until
from kafkaless import frame
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from liveboard.contract.board import Aggregate, Board
from liveboard.contract.expressions import parse_expression
from liveboard.contract.types import column_type
from liveboard.counting.values import compiled as evaluated
from liveboard.pipeline.checkpoints import Checkpoints, local_address
from liveboard.pipeline.expressions import compiled
from liveboard.pipeline.generation import Generation

pytestmark = pytest.mark.integration

_COLUMNS = {"s": "string", "i": "int", "b": "bigint", "d": "double", "c": "decimal(9,2)", "t": "date", "ok": "boolean"}
_ROWS: list[tuple[Any, ...]] = [
    ("Ada", 3, 2**40, 2.5, Decimal("1.25"), "2026-01-31", True),
    ("bob", -7, -1, -0.5, Decimal("-3.00"), "1999-12-31", False),
    ("", 1, 7, 1e10, Decimal("0.01"), "2026-02-01", None),
    (None, None, None, None, None, None, None),
]
_TEXTS = [
    "i + b * 2 - 1",
    "b % 3",
    "-i",
    "d * 2 / 4",
    "c + 1.5",
    "c * i",
    "c - 0.125",
    "abs(i) + length(s)",
    "coalesce(c, 0.001)",
    "coalesce(s, 'x')",
    "upper(s)",
    "lower(s) = 'ada'",
    "i > 2 AND NOT ok",
    "i > 2 OR ok",
    "s IN ('Ada', 'x') OR c NOT BETWEEN 0 AND 1",
    "s LIKE '%b'",
    "d <> 2.5",
    "d >= i",
    "c = 1.25",
    "t < '2026-01-31'",
    "ok IS NOT NULL AND (ok = TRUE OR i <= 1)",
]


def test_b40_expressions_mean_what_spark_sql_means(spark: SparkSession) -> None:
    types = ", ".join(f"{name} {'string' if type_ == 'date' else type_}" for name, type_ in _COLUMNS.items())
    rows = frame(spark, _ROWS, types).withColumn("t", F.col("t").cast("date"))
    parsed = {text: parse_expression(text, _COLUMNS) for text in _TEXTS}
    ours = rows.select(*[compiled(found, F.col).alias(text) for text, found in parsed.items()])
    theirs = rows.select(
        *[F.expr(text).cast(column_type(found.type).spark).alias(text) for text, found in parsed.items()]
    )
    assert dict(ours.dtypes) == {text: column_type(found.type).spark for text, found in parsed.items()}
    found = ours.collect()
    assert found == theirs.collect()
    places = {name: place for place, name in enumerate(_COLUMNS)}
    for row, expected in zip(_ROWS, found, strict=True):
        written = [str(value) if isinstance(value, Decimal) else value for value in row]
        assert {text: evaluated(each, places)(written) for text, each in parsed.items()} == expected.asDict()


@pytest.mark.parametrize("text", ["i / 0", "i % 0", "b + 9223372036854775807", "d * 1e", "c / 0.00", "-b"])
def test_b40_what_cannot_be_computed_is_null(spark: SparkSession, text: str) -> None:
    row = frame(
        spark, [(5, -(2**63) if text == "-b" else 5, 1e308, Decimal(1))], "i int, b bigint, d double, c decimal(9,2)"
    )
    text = text.replace("1e", "1000000")
    expression = parse_expression(text, _COLUMNS)
    assert row.select(compiled(expression, F.col)).collect() == [(None,)]
    written = [5, -(2**63) if text == "-b" else 5, 1e308, "1.00"]
    assert evaluated(expression, {name: place for place, name in enumerate("ibdc")})(written) is None


def test_b40_windows_that_have_ended_go_from_the_table_and_from_the_state(
    kafka: str, spark: SparkSession, checkpoint: Path
) -> None:
    lately = Aggregate(
        name="lately", source="accounts", by=("accountType",), window=1_000, keep=2_000, measures={"n": "count(*)"}
    )
    board = Board(sources=boards.EVERY_JOIN.sources, joins={}, aggregates={"lately": lately})
    bench = Bench(kafka, with_suffix(board, "ending"))
    bench.create_topics()

    def account(second: int) -> Event:
        return Event("accounts", json.dumps({"accountType": "savings"}).encode(), FIRST_MS + second * 1_000)

    def state() -> set[str]:
        rows = spark.read.format("statestore").load(str(checkpoint)).where("key.memory >= 0")
        return {json.loads(f"[{row['key']['key']}]")[1] for row in rows.collect()}

    bench.produce([account(second) for second in range(5)])
    with closing(bench):
        with followed(spark, bench, checkpoint):
            bench.produce([account(0), account(4), account(9)])
            assert len(bench.expect_oracle()["lately"]) == 1
        # The end of the first batch that follows drops what the batch before it has found to be over.
        checkpoints = Checkpoints(spark, local_address(checkpoint.parent))
        generation = Generation(spark, bench.plan, checkpoint.name, checkpoints, "5 seconds")
        try:
            generation.follow()
            until(lambda: len(state()) == 1, "the end of old windows in the state")
        finally:
            generation.stop()
