"""The tables of a board and their columns."""

from liveboard.config import Board
from liveboard.contract.names import REJECTS_TABLE
from liveboard.contract.schema import REJECT_COLUMNS, Column, join_columns, source_columns


def table_columns(board: Board) -> dict[str, tuple[Column, ...]]:
    """Every table that a generation of the board fills, with its columns."""
    tables = {source.table: source_columns(source.columns) for source in board.sources.values()}
    for name, join in board.joins.items():
        left, right = board.sources[join.left], board.sources[join.right]
        tables[name] = join_columns(left.columns, right.columns, join.on, right.name)
    return {**tables, REJECTS_TABLE: REJECT_COLUMNS}
