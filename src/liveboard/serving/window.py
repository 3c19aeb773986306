"""A window of a table as its viewers have it: computed once, and the same text for all of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Literal, NamedTuple, Protocol

from liveboard.contract.frames import delta_body, snapshot_body
from liveboard.serving.query import Query
from liveboard.serving.table import Row, Table

# How many steps a viewer may be behind before it gets a snapshot instead of the merged changes.
_REMEMBERED_STEPS = 128
# From this part of the window on, changed rows are sent as a snapshot.
_MOSTLY = 0.75
_FEW = 10


class WindowListener(Protocol):
    """Who shows a window."""

    def changed(self) -> None:
        """The window has a first or another content; called in the event loop, and must not wait."""


class _Step(NamedTuple):
    rows: Mapping[int, Row]
    size_before: int
    insert: int = 0


class Window:
    """Some rows of a query; `step` counts its contents, and is 0 until there is a first one."""

    def __init__(self, table: Table, query: Query, offset: int, size: int) -> None:
        self.table = table
        self.query = query
        self.offset = offset
        self.size = size
        self.step = 0
        self.listeners: set[WindowListener] = set()
        self.newest: bytes | None = None
        """A new row that nobody has been sent yet, to measure how long that takes."""
        self._keys: list[bytes] = []
        self._rows: list[bytes] = []
        self._total = 0
        self._steps: deque[_Step] = deque(maxlen=_REMEMBERED_STEPS)
        self._bodies: dict[int, tuple[Literal["snapshot", "delta"], str]] = {}

    @property
    def is_ready(self) -> bool:
        """Whether there is something to show."""
        return self.step > 0

    @property
    def total(self) -> int:
        """How many rows the query had at this step."""
        return self._total

    def show(self, keys: Sequence[bytes], rows: Sequence[bytes], total: int) -> None:
        """Makes these rows the content."""
        if not self.is_ready:
            self._keys, self._rows = list(keys), list(rows)
            return self._next(_Step({}, 0), total)
        insert = self._came_in_front(keys)
        content = list(zip(keys, rows, strict=True))
        old = zip(self._keys, self._rows, strict=True)
        changed = dict(enumerate(content[:insert]))
        changed |= {
            index: row
            for index, (row, before) in enumerate(zip(content[insert:], old, strict=False), insert)
            if row != before
        }
        changed |= {index: content[index] for index in range(insert + len(self._keys), len(keys))}
        if changed or len(keys) != len(self._keys) or total != self._total:
            step = _Step(changed, len(self._keys), insert)
            self._keys, self._rows = list(keys), list(rows)
            self._next(step, total)
        return None

    def patch(self, changed: Mapping[int, Row], total: int, insert: int = 0) -> None:
        """Moves the content back by `insert` rows and puts single rows in, by index; new ones at its end, no gap."""
        step = _Step(changed, len(self._keys), insert)
        self._keys[:0] = self._rows[:0] = [b""] * insert
        for index, (key, row) in sorted(changed.items()):
            if index < len(self._keys):
                self._keys[index], self._rows[index] = key, row
            else:
                self._keys.append(key)
                self._rows.append(row)
        del self._keys[self.size :], self._rows[self.size :]
        self._next(step, total)

    def since(self, step: int) -> tuple[Literal["snapshot", "delta"], str]:
        """What leads from the content at a step to this one, the shorter way; from step 0 always a snapshot."""
        body = self._bodies.get(step)
        if body is None:
            body = self._bodies[step] = self._delta(step) or self._snapshot()
        return body

    def content(self) -> str:
        """The whole content: a snapshot's body."""
        return self.since(0)[1]

    def _next(self, step: _Step, total: int) -> None:
        self._total = total
        self.step += 1
        self._steps.append(step)
        self._bodies.clear()
        for listener in tuple(self.listeners):
            listener.changed()

    def _delta(self, step: int) -> tuple[Literal["delta"], str] | None:
        behind = self.step - step
        if step == 0 or behind > len(self._steps):
            return None
        steps = list(islice(self._steps, len(self._steps) - behind, None))
        merged: dict[int, Row] = {}
        insert = 0
        for each in steps:
            if each.insert:
                merged = {index + each.insert: row for index, row in merged.items()}
                insert += each.insert
            merged |= each.rows
        merged = {index: row for index, row in merged.items() if index < len(self._keys)}
        if len(merged) > _FEW and len(merged) > len(self._keys) * _MOSTLY:
            return None
        rows = [(index, *merged[index]) for index in sorted(merged)]
        drop = max(0, steps[0].size_before + insert - len(self._keys))
        return "delta", delta_body(self._total, rows, drop, insert)

    def _came_in_front(self, keys: Sequence[bytes]) -> int:
        """How many rows have come in front of the first one that is still there."""
        if not self.query.newest:
            return 0
        places = {key: place for place, key in enumerate(keys)}
        kept = next((place for place, key in enumerate(self._keys) if key in places), None)
        return 0 if kept is None else max(0, places[self._keys[kept]] - kept)

    def _snapshot(self) -> tuple[Literal["snapshot"], str]:
        body = snapshot_body(self.table.generation, self._total, self.offset, self.table.wire, self._keys, self._rows)
        return "snapshot", body
