"""The columns that are inferred from random documents accept all the documents that they were inferred from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import oracle
import pytest
from documents import DOCUMENTS
from hypothesis import given, settings
from hypothesis import strategies as st

from liveboard import config
from liveboard.config import KafkaSettings
from liveboard.inspect.board import board_toml
from liveboard.inspect.formats import SampledRecord
from liveboard.inspect.topic import describe


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("inspect") / "liveboard.toml"


@settings(max_examples=200)
@given(st.lists(DOCUMENTS, min_size=1, max_size=6))
def test_b37_inferred_columns_accept_what_they_were_inferred_from(file: Path, documents: list[dict[str, Any]]) -> None:
    values = [json.dumps(document).encode() for document in documents]
    topic = describe("t", [SampledRecord(value) for value in values])
    if not topic.has_columns:
        return
    file.write_text(board_toml(KafkaSettings(), "b", {"s": topic}, []), encoding="utf-8")
    source = config.load(file, {}).board.sources["s"]
    assert [column.name for column in source.columns] == [column.name for column in topic.columns]
    for number, value in enumerate(values):
        row = oracle.read(source, oracle.Record("t", 0, number, 0, value))
        for column in topic.columns:
            assert (row[column.name] is None) == (column.values[number] is None), column
