"""One schema for all paths of a source; what Spark makes of it is in tests/integration/test_parse.py."""

from __future__ import annotations

import pytest

from liveboard.contract.paths import Path
from liveboard.pipeline.shape import VARIANT, shape_of, variant_path


@pytest.mark.parametrize(
    ("leaves", "type_"),
    [
        ([(("a",), "int"), (("b",), "string")], "struct<`a` int, `b` string>"),
        ([(("a", "b"), "int"), (("a", "c"), "date")], "struct<`a` struct<`b` int, `c` date>>"),
        ([(("a", 0), "int"), (("a", 7), "int")], "struct<`a` array<int>>"),
        ([(("a", 0, "b"), "int"), (("a", 1, "c"), "int")], "struct<`a` array<struct<`b` int, `c` int>>>"),
        ([(("a`b", "c.d"), "int")], "struct<`a``b` struct<`c.d` int>>"),
        ([((), VARIANT)], VARIANT),
    ],
)
def test_each_place_is_read_once_as_what_its_columns_need(leaves: list[tuple[Path, str]], type_: str) -> None:
    shape = shape_of(leaves)
    assert (shape.type, shape.is_mixed) == (type_, False)


@pytest.mark.parametrize(
    "leaves",
    [
        [(("a",), "int"), (("a",), "string")],
        [(("a",), VARIANT), (("a", "b"), "int")],
        [(("a", "b"), "int"), (("a", 0), "int")],
        [(("a", 0), "int"), (("a", 1), "string")],
    ],
    ids=["two types", "whole and a part", "object and array", "elements of two types"],
)
def test_a_place_that_columns_need_in_two_ways_is_a_variant(leaves: list[tuple[Path, str]]) -> None:
    found = shape_of([*leaves, (("z",), "int")])
    a = found.fields["a"].element or found.fields["a"]
    assert (a.type, a.is_mixed) == (VARIANT, True)
    assert (found.is_mixed, found.fields["z"].type) == (False, "int")


def test_variants_are_looked_into_by_names_that_need_quotes_and_by_places() -> None:
    assert variant_path(("a", 0, "b c", "d.e", "f[g")) == '$.a[0].b c["d.e"]["f[g"]'
