"""The variables of lambdas have the same names in every query, and still mean what they should."""

from __future__ import annotations

import pytest
from kafkaless import frame
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("generated_code")]


def _nested() -> Column:
    """Of each number in `a` the sum with each one in `b`, and how many of `b` are above the least of `a`."""
    above = F.size(F.filter("b", lambda each: each > F.array_min("a")))
    return F.transform("a", lambda one: F.struct(F.transform("b", lambda other: one * 10 + other), above))


def test_the_same_lambda_is_the_same_expression_whenever_it_is_made(spark: SparkSession) -> None:
    assert str(_nested()) == str(_nested())


def test_lambdas_inside_of_each_other_keep_their_variables_apart(spark: SparkSession) -> None:
    row = frame(spark, [([1, 2], [1, 5])], "a array<int>, b array<int>")
    (found,) = row.select(_nested()).collect()
    assert [list(each) for each in found[0]] == [[[11, 15], 1], [[21, 25], 1]]


def test_a_query_that_is_made_again_needs_no_new_code(spark: SparkSession) -> None:
    def run(table: str) -> None:
        rows = frame(spark, [([1, 2],)], "a array<int>")
        doubled = F.transform("a", lambda each: F.concat(F.lit(table), each.cast("string")))
        assert rows.select(F.explode(doubled)).collect() == [(f"{table}1",), (f"{table}2",)]

    metrics = getattr(spark._jvm, "org.apache.spark.metrics.source.CodegenMetrics")
    run("one")
    compiled = metrics.METRIC_COMPILATION_TIME().getCount()
    run("other")
    assert metrics.METRIC_COMPILATION_TIME().getCount() == compiled
