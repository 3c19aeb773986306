"""How Spark is set up for boards of different size, where nobody has decided it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping

from liveboard.contract.board import Board
from liveboard.contract.errors import LiveboardError

_MEMORY = "spark.driver.memory"

# A board of a million rows is built as fast with this heap as with a larger one: what grows is in RocksDB.
_HEAP_MB = 640
# Spark keeps several plans of a query, each with some hundred nodes for a source and for a column, and every task, of
# which there is one for each source at least, has a plan of its own.
_PLANS_MB, _TASK_MB = 1.5, 0.1
_SOURCE_AS_COLUMNS = 2
# So much of it fits into that heap.
_FITTING_MB = 200
# Beyond so many columns Java takes so long to compile what Spark generates that Spark is faster without.
_GENERATED = 150
WITHOUT_CODE = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}


def conf(board: Board) -> dict[str, str]:
    """Spark's settings for queries over this board."""
    return {_MEMORY: f"{heap_mb(board)}m", **(WITHOUT_CODE if _weight(board) > _GENERATED else {})}


def heap_mb(board: Board) -> int:
    """How much memory Java needs, with the plans of the board's queries."""
    plans_mb = _weight(board) * (_PLANS_MB + _TASK_MB * len(board.sources))
    return _HEAP_MB + max(0, round(plans_mb - _FITTING_MB))


def check(board: Board, configured: Mapping[str, str], log: Callable[[str], None]) -> None:
    """Refuses a board that is too large for this machine; says so where it is too large for what was configured."""
    needed, machine = heap_mb(board), os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20
    size = f"a board of {len(board.sources)} sources with {_columns(board)} columns"
    advice = "name fewer columns, or make several boards of it (board.name)"
    if _MEMORY in configured:
        found = _mb(configured[_MEMORY])
        if needed > _HEAP_MB and found < needed:
            log(
                f"{_MEMORY}: expected about {needed}m for {size}, found {configured[_MEMORY]}: it may run out of memory"
            )
    elif needed > machine:
        raise LiveboardError(f"{size} needs about {needed:,} MB of memory, found {machine:,} on this machine; {advice}")


def _mb(text: str) -> float:
    """The megabytes of a size as Spark writes it, such as 2g; infinite for another text, which Spark refuses itself."""
    found = re.fullmatch(r"(\d+)\s*([kmgt]?)b?", text.strip().lower())
    return int(found[1]) * 1024.0 ** "kmgt".index(found[2] or "m") / 1024 if found else float("inf")


def _weight(board: Board) -> int:
    """Of the board's queries, in columns."""
    return _columns(board) + _SOURCE_AS_COLUMNS * len(board.sources)


def _columns(board: Board) -> int:
    return sum(len(source.columns) for source in board.sources.values())
