"""The groups of an aggregate over a table by key: what each comes to follows from the rows that the table has now.

A row that changes or goes is taken out of its groups with the values that it had. So the content is a function of the
table, whatever was written in between and how often.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson

from liveboard.contract.aggregates import columns_of, group_columns, measures_of
from liveboard.contract.board import Aggregate, Source
from liveboard.contract.changelog import BY_KEY, encode_row, timestamp_text
from liveboard.contract.expressions import parse_condition
from liveboard.contract.schema import source_columns
from liveboard.counting.measures import Count, Extreme, Greatest, MeasureState, kept
from liveboard.counting.values import Row, compiled

_EPOCH = datetime.fromtimestamp(0, UTC)
_COUNTS = object()


class Group:
    """The rows of one group, by what they have brought."""

    def __init__(self, key: bytes, head: Sequence[Any], measures: Sequence[MeasureState]) -> None:
        self.key = key
        """Of its row."""
        self._head = head
        self._measures = measures
        self._newest = Extreme(Greatest, lambda found: found)
        self._rows = 0

    def add(self, ts: str, values: Sequence[Any]) -> None:
        """A row comes, with the arguments of the measures."""
        self._rows += 1
        self._newest.add(ts)
        for measure, value in zip(self._measures, values, strict=True):
            if value is not None:
                measure.add(value)

    def remove(self, ts: str, values: Sequence[Any]) -> None:
        """A row goes, with what it had brought."""
        self._rows -= 1
        self._newest.remove(ts)
        for measure, value in zip(self._measures, values, strict=True):
            if value is not None:
                measure.remove(value)

    @property
    def is_empty(self) -> bool:
        """Whether all its rows have gone."""
        return not self._rows

    def row(self) -> bytes | None:
        """Its changelog row; none where it is empty."""
        if self.is_empty:
            return None
        return encode_row([*self._head, *[measure.answer() for measure in self._measures], self._newest.answer()])


class Groups:
    """Follows the rows of a table by key and says what becomes of the groups."""

    def __init__(self, aggregate: Aggregate, source: Source) -> None:
        places = {column.name: place for place, column in enumerate(source_columns(source.columns))}
        self._measures = measures_of(aggregate, source)
        self._arguments = [compiled(each.of, places) if each.of else None for each in self._measures]
        condition = parse_condition(aggregate.where, columns_of(source)) if aggregate.where else None
        self._where = compiled(condition, places) if condition else None
        self._by = [places[column.name] for column in group_columns(aggregate, source)[: len(aggregate.by)]]
        self._aggregate = aggregate
        self._groups: dict[bytes, Group] = {}
        self._brought: dict[bytes, tuple[tuple[Group, ...], str, tuple[Any, ...]]] = {}
        self._touched: dict[bytes, Group] = {}

    def take(self, key: bytes, row: Row | None) -> None:
        """The row of the key is another one now, or none."""
        if before := self._brought.pop(key, None):
            groups, ts, values = before
            for group in groups:
                group.remove(ts, values)
                self._touched[group.key] = group
        if row is None or (self._where and not self._where(row)):
            return
        ts, values = row[-1], tuple(_COUNTS if of is None else of(row) for of in self._arguments)
        groups = tuple(self._group(head) for head in self._heads(row))
        for group in groups:
            group.add(ts, values)
            self._touched[group.key] = group
        self._brought[key] = groups, ts, values

    def changed(self) -> dict[bytes, bytes | None]:
        """The rows of the groups that were touched since this was asked last; None where one is gone."""
        touched, self._touched = self._touched, {}
        for key, group in touched.items():
            if group.is_empty:
                del self._groups[key]
        return {key: group.row() for key, group in touched.items()}

    def keys(self) -> set[bytes]:
        """Of the rows that the groups have now."""
        return {key for key, group in self._groups.items() if not group.is_empty}

    def _heads(self, row: Row) -> list[list[Any]]:
        """What tells the row's groups apart: one, or one for each window that it is in."""
        values, window = [row[place] for place in self._by], self._aggregate.window
        if not window:
            return [values]
        slide = self._aggregate.slide or window
        try:
            now = (datetime.fromisoformat(row[-1]) - _EPOCH) // timedelta(milliseconds=1)
        except ValueError:
            return []  # of years that Python does not know
        starts = range(now - now % slide, now - window, -slide)
        return [[*values, timestamp_text(start), timestamp_text(start + window)] for start in starts]

    def _group(self, head: list[Any]) -> Group:
        key = BY_KEY.encode() + orjson.dumps(head)[1:-1]
        if key not in self._groups:
            measures = [Count() if each.of is None else kept(each) for each in self._measures]
            self._groups[key] = Group(key, head, measures)
        return self._groups[key]
