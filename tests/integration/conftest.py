"""The board and the server of tests that look at it through WebSockets and HTTP."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from live import Board, Running, serving, users


@pytest.fixture
def board(kafka: str) -> Board:
    """A board with a live generation of ten users."""
    board = Board(kafka)
    generation = board.build()
    board.write(generation, users(*range(10)))
    board.switch(generation)
    return board


@pytest.fixture
def running(board: Board) -> Iterator[Running]:
    """A server that shows the board."""
    with serving(board.bootstrap) as running:
        running.bound(str(board.live))
        yield running
