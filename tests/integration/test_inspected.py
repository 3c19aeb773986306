"""Spark accepts, by the columns that were inferred from random documents, every one of the documents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import oracle
import pytest
from documents import DOCUMENTS
from hypothesis import given, settings
from hypothesis import strategies as st
from kafkaless import kafka_frame
from pyspark.sql import SparkSession

from liveboard import config
from liveboard.config import KafkaSettings
from liveboard.inspect.board import board_toml
from liveboard.inspect.formats import SampledRecord
from liveboard.inspect.topic import describe
from liveboard.pipeline.parse import parse, row_column

pytestmark = pytest.mark.integration


@settings(max_examples=8)
@given(st.lists(DOCUMENTS, min_size=1, max_size=20))
def test_b37_spark_accepts_what_columns_were_inferred_from(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, documents: list[dict[str, Any]]
) -> None:
    values = [json.dumps(document).encode() for document in [*documents, {"id": 1}]]
    topic = describe("t", [SampledRecord(value) for value in values])
    file = Path(tmp_path_factory.mktemp("inspected")) / "liveboard.toml"
    file.write_text(board_toml(KafkaSettings(), "b", {"s": topic}, []), encoding="utf-8")
    source = config.load(file, {}).board.sources["s"]
    records = [oracle.Record("t", 0, number, 0, value) for number, value in enumerate(values)]
    rows = parse(kafka_frame(spark, records), [source]).orderBy("offset").collect()
    assert [row["reason"] for row in rows] == [None] * len(values)
    for number, row in enumerate(rows):
        found = row[row_column(source)]
        assert [value is None for value in found] == [column.values[number] is None for column in topic.columns]
