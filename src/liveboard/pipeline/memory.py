"""Which joins share a memory, and what it has to hold of each side; aggregates have memories of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from liveboard.contract.board import Board, History, Join, Source
from liveboard.contract.schema import Column
from liveboard.pipeline.aggregates import Grouping, groupings
from liveboard.pipeline.joins import Kind, SideName, kind_of


@dataclass(frozen=True)
class Memory:
    """Joins over the same two sources, key and history: what is remembered of a key serves them all.

    Its sides are named as in the first of the joins. For a join that has the sources the other way round, the right
    side is the one named left here.

    A table by key that is in no join has a memory without a right side: a record has a row only if it is the newest.
    """

    id: int
    left: Source
    right: Source | None
    on: tuple[str, ...]
    history: History | None
    joins: tuple[Join, ...]

    def side(self, source: str) -> SideName:
        """Which side of the memory the source is."""
        return "left" if source == self.left.name else "right"

    def source(self, side: SideName) -> Source | None:
        """The source of that side."""
        return self.left if side == "left" else self.right

    def is_by_key(self, side: SideName) -> bool:
        """Whether that side is a table by key."""
        source = self.source(side)
        return source is not None and source.by_key

    def other_columns(self, side: SideName) -> list[Column]:
        """The columns of that side's source apart from the key."""
        source = self.source(side)
        return [column for column in source.columns if column.name not in self.on] if source else []

    def kind(self, join: Join) -> Kind:
        """What the join does with these sources."""
        return kind_of(join.how, *(self.is_by_key(self.side(source)) for source in (join.left, join.right)))

    def depth(self, side: SideName) -> History | None:
        """How many records of a key have to be remembered of that side, by time; None where the key's row is enough."""
        if self.source(side) is None or (self.is_by_key(side) and not self._has_versions(side)):
            return None
        if self._newest_is_enough(side):
            return 1
        return self.history or max(self._usual(join, side) for join in self.joins)

    def counts(self, side: SideName) -> bool:
        """Whether a join has to know how many records there were, since some of them may be forgotten."""
        return self.history != "all" and self.depth(side) is not None and not self._newest_is_enough(side)

    def keeps_null_keys(self, side: SideName) -> bool:
        """Whether a record of that side without a key has a row of its own in some join."""
        return any(self.kind(join).keeps_unmatched and side == self.side(join.left) for join in self.joins)

    def takes_versions(self, join: Join, side: SideName) -> bool:
        """Whether the join looks for a record of that side by time, among all that there were."""
        return side == self.side(join.right) and self.kind(join).matches_in_time

    def _has_versions(self, side: SideName) -> bool:
        return any(self.takes_versions(join, side) for join in self.joins)

    def _newest_is_enough(self, side: SideName) -> bool:
        return all(self._takes_newest(join, side) for join in self.joins)

    def _takes_newest(self, join: Join, side: SideName) -> bool:
        return self.kind(join).remembers_right == "newest" and side == self.side(join.right)

    def _usual(self, join: Join, side: SideName) -> int:
        return 1 if self._takes_newest(join, side) else self.kind(join).usual_history


def memories(board: Board) -> list[Memory]:
    """The board's joins, gathered by what they can share, then the tables by key that are in none."""
    gathered: dict[tuple[object, ...], list[Join]] = {}
    for join in board.joins.values():
        pair = tuple(sorted((join.left, join.right)))
        gathered.setdefault((pair, join.on, join.history), []).append(join)
    joined = {name for join in board.joins.values() for name in (join.left, join.right)}
    alone = [source for source in board.sources.values() if source.by_key and source.name not in joined]
    return [
        *(
            Memory(
                id=index,
                left=board.sources[joins[0].left],
                right=board.sources[joins[0].right],
                on=(joins[0].on,),
                history=joins[0].history,
                joins=tuple(joins),
            )
            for index, joins in enumerate(gathered.values())
        ),
        *(
            Memory(id=index, left=source, right=None, on=source.key, history="all", joins=())
            for index, source in enumerate(alone, len(gathered))
        ),
    ]


def board_groupings(board: Board) -> list[Grouping]:
    """The board's aggregates over records, which are remembered beside its joins; those over tables by key are not."""
    return groupings(board, len(memories(board)))


def depths(board_memories: Sequence[Memory], side: SideName) -> dict[History, list[int]]:
    """Every depth to which some memory holds that side, with those memories' ids."""
    found: dict[History, list[int]] = {}
    for memory in board_memories:
        depth = memory.depth(side)
        if depth is not None:
            found.setdefault(depth, []).append(memory.id)
    return found
