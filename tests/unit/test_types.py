"""One table of column types, and every layer knows all that is in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import get_args

import duckdb
import pytest

from liveboard import arrow
from liveboard.client import table, update
from liveboard.commands import display
from liveboard.contract import filters, frames, types
from liveboard.contract.schema import Column, parse_schema
from liveboard.contract.types import TYPES, WireType, column_type, wire_column_type
from liveboard.counting import measures, values
from liveboard.pipeline import encode
from liveboard.pipeline.avro_fields import AVRO_FIELDS
from liveboard.pipeline.fields import FIELDS
from liveboard.serving import encoders, mirror, preview, query

# A column of every type.
ALL = [Column("c", "decimal(38,9)" if name == "decimal" else name) for name in TYPES]
SHARED = json.loads(Path(frames.__file__).with_name("frames.json").read_text())["types"]


@pytest.mark.parametrize(
    "layer",
    [
        FIELDS,
        AVRO_FIELDS,
        encode._JSON,
        filters._VALUES,
        query._SEARCHED,
        encoders._ARRAYS,
        preview._FITS,
        display._SHOWN,
    ],
    ids=["read JSON", "read Avro", "write JSON", "filter", "search", "export", "preview", "terminal"],
)
def test_every_layer_knows_every_type(layer: dict[str, object]) -> None:
    assert set(layer) == set(TYPES)


def test_every_type_has_literals_and_measures_or_is_known_to_have_none() -> None:
    assert set(values._LITERALS) == set(TYPES) - {"double", "json", "binary"}
    assert set(measures._EXACT) == {name for name, type_ in TYPES.items() if type_.is_number}
    assert set(measures._SHOWN) == {name for name, type_ in TYPES.items() if type_.is_ordered}


def test_the_client_knows_every_type_of_the_wire() -> None:
    assert set(update._READ) == set(get_args(WireType)) == {type_.wire for type_ in TYPES.values()}


def test_arrow_has_every_type_that_the_table_names() -> None:
    named = {type_.arrow for type_ in TYPES.values()}
    assert set(arrow.ARROW_TYPES) == named
    for column in ALL:
        assert str(arrow.arrow_type(column.kind)) == column.kind.arrow
    assert set(table._PANDAS_TYPES) == named


def test_duckdb_has_every_type_that_the_table_names() -> None:
    named = {type_.duckdb for type_ in TYPES.values()}
    assert set(mirror._ARROW_TYPES) == named
    for type_ in (column.kind.duckdb for column in ALL):
        assert duckdb.execute(f"SELECT typeof(NULL::{type_})").fetchall() == [(type_,)]


def test_the_page_has_the_same_types() -> None:
    ours = [{"type": t.wire, "align": t.align, "isNumber": t.is_number} for t in TYPES.values()]
    assert ours == SHARED


def test_a_type_is_found_by_each_of_its_names() -> None:
    for column in ALL:
        assert parse_schema(f"c {column.type}") == (column,)
        assert column.kind is column_type(column.type)
        assert column.kind.name == wire_column_type(column.kind.wire).name
    for name, type_ in TYPES.items():
        assert wire_column_type(type_.wire) is column_type(name) is type_
        assert {types.meant_type(other) for other in type_.other_names} <= {name}


def test_a_decimal_has_its_digits_in_every_name_of_it() -> None:
    kind = column_type("decimal(10,2)")
    assert (kind.name, kind.parameters) == ("decimal", (10, 2))
    assert (kind.spark, kind.duckdb, kind.arrow) == ("decimal(10,2)", "DECIMAL(10,2)", "decimal128(10, 2)")


def test_a_type_that_there_is_not_is_no_text() -> None:
    with pytest.raises(KeyError):
        column_type("colour")


def test_numbers_are_aligned_at_their_end() -> None:
    assert {type_.align for type_ in TYPES.values() if type_.is_number} == {"right"}
    assert {type_.align for type_ in TYPES.values() if not type_.is_number} == {"left"}
