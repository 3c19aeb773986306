"""Expressions that are kept: made once for the same arguments, and never after Java was started anew."""

from __future__ import annotations

from collections.abc import Iterator

import boards
import pytest

from liveboard.pipeline import kept


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    """These are no expressions, and nobody else is to find them."""
    kept.forget()
    yield
    kept.forget()


@kept.kept
def made(*parts: object) -> list[object]:
    """Another list each time that it is made."""
    return list(parts)


def test_the_same_arguments_give_what_was_made_for_them() -> None:
    first = made("a", 1)
    assert made("a", 1) is first
    assert made("a", 2) == ["a", 2]
    assert made("a", 1) is first


def test_boards_that_differ_in_their_topics_alone_share_what_was_made() -> None:
    board = boards.default_board()
    assert made(boards.with_suffix(board, "there").shape) is made(board.shape)
    assert made(boards.default_board("inner").shape) is not made(board.shape)
    assert made(boards.by_key(board, "users").shape) is not made(board.shape)


def test_what_is_forgotten_is_made_again() -> None:
    first = made("a")
    kept.forget()
    assert made("a") is not first


def test_many_boards_do_not_pile_up() -> None:
    first = made(0)
    for number in range(1_000):
        made(number)
    assert made(0) is not first
