"""One table of formats of values, and every layer knows all that is in it."""

from __future__ import annotations

from collections.abc import Collection
from typing import get_args

import pytest
from starlette.exceptions import HTTPException

from liveboard.contract.board import Source, Wiring
from liveboard.contract.formats import FORMATS, FormatName
from liveboard.contract.status import GenerationRecord, State
from liveboard.inspect import formats as recognised
from liveboard.inspect import toml
from liveboard.pipeline.parse import READERS
from liveboard.serving import preview
from liveboard.serving.origins import Origins


@pytest.mark.parametrize(
    "layer", [get_args(FormatName), READERS, preview._ROWS], ids=["configuration", "pipeline", "preview"]
)
def test_every_layer_knows_every_format(layer: Collection[str]) -> None:
    assert set(layer) == set(FORMATS)


def test_every_format_is_recognised() -> None:
    # Topics also hold what no board can read.
    assert set(FORMATS) < set(recognised.FoundFormat) == set(toml._FORMATS)


def test_a_preview_is_possible_of_what_needs_no_schemas() -> None:
    assert {name for name, row in preview._ROWS.items() if row} == {
        name for name, format in FORMATS.items() if not format.needs_schemas
    }


def test_changes_of_rows_are_a_table_by_key_whatever_the_mode() -> None:
    def table_by_key(name: FormatName) -> bool:
        return Source(name="s", topic="t", table="s_ui", schema="id string", format=name).by_key

    assert {name for name in FORMATS if table_by_key(name)} == {"debezium"}


def test_a_server_says_that_it_does_not_know_the_format_of_a_newer_pipeline() -> None:
    described = {"s": {"table": "s_ui", "format": "protobuf"}}
    record = GenerationRecord(state=State.LIVE, wiring=Wiring({}, {}), tables={}, fingerprint={"sources": described})
    origins = Origins(record)
    with pytest.raises(HTTPException, match='s: expected json, debezium or avro, found "protobuf"'):
        origins.format("s")
