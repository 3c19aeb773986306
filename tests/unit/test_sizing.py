"""How Spark is set up for small and large boards."""

from __future__ import annotations

import pytest

from liveboard.config import default_board
from liveboard.contract.board import Board, Source
from liveboard.contract.errors import LiveboardError
from liveboard.pipeline import sizing


def _board(sources: int, columns: int) -> Board:
    schema = ", ".join(f"c{number} string" for number in range(columns))
    made = (Source(name=f"s{n}", topic=f"s{n}", table=f"s{n}_ui", schema=schema) for n in range(sources))
    return Board(sources={source.name: source for source in made})


def test_a_usual_board_has_the_usual_heap_and_generated_code() -> None:
    assert sizing.conf(default_board()) == {"spark.driver.memory": "640m"}


def test_more_columns_and_more_sources_need_more_memory() -> None:
    heaps = [sizing.heap_mb(board) for board in (_board(1, 200), _board(1, 1_000), _board(50, 20), _board(200, 20))]
    assert heaps == sorted(set(heaps))
    assert sizing.conf(_board(1, 1_000))["spark.sql.codegen.factoryMode"] == "NO_CODEGEN"


def test_a_board_that_does_not_fit_is_refused_or_told() -> None:
    said: list[str] = []
    sizing.check(default_board(), {"spark.driver.memory": "64m"}, said.append)
    sizing.check(_board(1, 1_000), {"spark.driver.memory": "4g"}, said.append)
    sizing.check(_board(1, 1_000), {"spark.driver.memory": "nonsense"}, said.append)
    sizing.check(_board(1, 1_000), {}, said.append)
    assert said == []
    sizing.check(_board(1, 1_000), {"spark.driver.memory": "1g"}, said.append)
    [line] = said
    assert line.endswith("for a board of 1 sources with 1000 columns, found 1g: it may run out of memory")
    with pytest.raises(LiveboardError, match="a board of 3000 sources with 6000 columns needs about"):
        sizing.check(_board(3_000, 2), {}, said.append)
