"""Records as Spark would read them from Kafka, without Kafka."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from oracle import Record
from pyspark.sql import DataFrame, SparkSession

_SCHEMA = (
    "topic string, partition int, offset bigint, timestamp timestamp, key binary, value binary, "
    "headers array<struct<key string, value binary>>"
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def kafka_frame(spark: SparkSession, records: Sequence[Record]) -> DataFrame:
    """The records with the columns of Spark's Kafka source."""
    rows = [
        (r.topic, r.partition, r.offset, _EPOCH + timedelta(milliseconds=r.timestamp_ms), r.key, r.value, r.headers)
        for r in records
    ]
    return frame(spark, rows, _SCHEMA)


def frame(spark: SparkSession, rows: Sequence[tuple[Any, ...]], schema: str) -> DataFrame:
    """In one partition: Spark would make hundreds, one for every task that it can run, each with a Python process."""
    return spark.createDataFrame(spark.sparkContext.parallelize(rows, 1), schema)
