"""Boards in parts that Spark builds in seconds, and what differs from part to part."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from hypothesis import strategies as st

from liveboard.contract.board import Board, History

T = TypeVar("T")


def parts(board: Board) -> list[Board]:
    """Boards of two joins and two aggregates at most, which have all of them: together they take Spark too long."""
    joins, aggregates = list(board.joins.items()), list(board.aggregates.items())
    count = (len(joins) + 1) // 2
    # Each with another that is neither of its kind nor of its direction.
    turned = joins[:count] + joins[count + 1 :] + joins[count : count + 1]
    return [
        replace(board, joins=dict(turned[number::count]), aggregates=dict(aggregates[number::count]))
        for number in range(count)
    ]


def chosen(data: st.DataObject, values: Sequence[T], name: str) -> T:
    """One of the values by chance, another for another name: the examples of a test's parameters are drawn alike."""
    return data.draw(st.permutations(values))[zlib.crc32(name.encode()) % len(values)]


def remembering(data: st.DataObject, depths: Sequence[History], board: Board, name: str = "") -> Board:
    """The same board with joins that remember so many records of a key, or so many."""
    joins = {each: replace(join, history=chosen(data, depths, each + name)) for each, join in board.joins.items()}
    return replace(board, joins=joins)


def named(board: Board) -> str:
    """What a test with this board is called."""
    return ", ".join([*board.joins, *board.aggregates])
