"""The tables of a board and their columns."""

from liveboard.contract.aggregates import aggregate_columns
from liveboard.contract.board import Board
from liveboard.contract.names import ALERTS_TABLE, CONTROL_TABLE, REJECTS_TABLE, STATUS_TABLE
from liveboard.contract.schema import REJECT_COLUMNS, Column, join_columns, source_columns
from liveboard.contract.status import ALERTS_COLUMNS, CONTROL_COLUMNS, status_columns


def table_columns(board: Board) -> dict[str, tuple[Column, ...]]:
    """Every table that a generation of the board fills, with its columns."""
    tables = {source.table: source_columns(source.columns) for source in board.sources.values()}
    for name, join in board.joins.items():
        left, right = board.sources[join.left], board.sources[join.right]
        tables[name] = join_columns(left.columns, right.columns, join.on, right.name)
    for name, aggregate in board.aggregates.items():
        tables[name] = aggregate_columns(aggregate, board.sources[aggregate.source])
    return {**tables, REJECTS_TABLE: REJECT_COLUMNS}


def all_columns(board: Board) -> dict[str, tuple[Column, ...]]:
    """Every table of the board, with those that belong to no generation."""
    own = {CONTROL_TABLE: CONTROL_COLUMNS, STATUS_TABLE: status_columns(tuple(board.sources))}
    alerts = {ALERTS_TABLE: ALERTS_COLUMNS} if board.alerts else {}
    return {**table_columns(board), **own, **alerts}
