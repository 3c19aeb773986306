"""The kinds of joins and what memories follow from them; their rows are in tests/integration/test_joins.py."""

from __future__ import annotations

from dataclasses import replace

import boards

from liveboard.contract.joins import JOIN_KINDS
from liveboard.pipeline.joins import KINDS
from liveboard.pipeline.memory import depths, memories


def test_every_kind_has_its_forms() -> None:
    assert tuple(KINDS) == JOIN_KINDS
    assert [kind.name for kind in KINDS.values()] == list(JOIN_KINDS)


def test_joins_over_the_same_sources_share_a_memory_whichever_way_round() -> None:
    (memory,) = memories(boards.default_board())
    assert [join.name for join in memory.joins] == ["final_ui", "user_account"]
    assert [source and source.name for source in (memory.left, memory.right)] == ["users", "accounts"]
    assert (memory.side("users"), memory.side("accounts")) == ("left", "right")


def test_joins_on_different_columns_share_none() -> None:
    assert [[join.name for join in memory.joins] for memory in memories(boards.SHIPPING)] == [
        ["order_items"],
        ["order_trucks", "order_pairs"],
    ]


def test_a_left_join_alone_remembers_one_right_record_and_counts_none() -> None:
    (memory,) = memories(boards.one_join("left"))
    assert (memory.depth("left"), memory.depth("right")) == (100, 1)
    assert (memory.counts("left"), memory.counts("right")) == (True, False)


def test_a_join_the_other_way_round_needs_more_of_both_sides() -> None:
    (memory,) = memories(boards.default_board())
    assert (memory.depth("left"), memory.depth("right")) == (100, 16)
    assert depths([memory], "right") == {16: [0]}


def test_b32_a_join_that_says_how_many_records_it_remembers_does_so_for_both_sides() -> None:
    (memory,) = memories(boards.one_join("asof", history=7))
    assert (memory.depth("left"), memory.depth("right")) == (7, 7)


def test_who_remembers_all_counts_nothing() -> None:
    (memory,) = memories(boards.one_join("inner", history="all"))
    assert (memory.depth("left"), memory.counts("left")) == ("all", False)


def test_b8_b9_left_records_without_a_key_are_kept_where_the_kind_keeps_unmatched_ones() -> None:
    kept = {}
    for how in JOIN_KINDS:
        (memory,) = memories(boards.one_join(how))
        kept[how] = (memory.keeps_null_keys("left"), memory.keeps_null_keys("right"))
    assert kept == {"left": (True, False), "inner": (False, False), "asof": (True, False)}


def test_b38_of_a_table_by_key_the_row_is_remembered_and_for_as_of_its_past() -> None:
    (memory,) = memories(boards.by_key(boards.one_join("left"), "accounts"))
    assert (memory.depth("left"), memory.depth("right")) == (100, None)
    (memory,) = memories(boards.by_key(boards.default_board(), "users"))
    assert [memory.depth("left"), memory.counts("left")] == [100, True]
    assert [memory.takes_versions(join, "left") for join in memory.joins] == [False, True]
    (memory,) = memories(boards.by_key(boards.one_join("inner"), "users", "accounts"))
    assert (depths([memory], "left"), depths([memory], "right")) == ({}, {})


def test_b38_a_table_by_key_in_no_join_has_a_memory_and_other_sources_have_none() -> None:
    (memory,) = memories(boards.STOCK)
    assert (memory.right, memory.on, memory.joins) == (None, ("sku", "shelf no"), ())
    assert memories(replace(boards.default_board(), joins={})) == []
