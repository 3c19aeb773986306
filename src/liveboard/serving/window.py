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


class Listener(Protocol):
    """Who shows a window."""

    def changed(self) -> None:
        """The window has a first or another content; called in the event loop, and must not wait."""


class _Step(NamedTuple):
    rows: Mapping[int, Row]
    size_before: int


class Window:
    """Some rows of a query; `step` counts its contents, and is 0 until there is a first one."""

    def __init__(self, table: Table, query: Query, offset: int, size: int) -> None:
        self.table = table
        self.query = query
        self.offset = offset
        self.size = size
        self.step = 0
        self.listeners: set[Listener] = set()
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
        old = zip(self._keys, self._rows, strict=True)
        changed = {
            index: row
            for index, (row, before) in enumerate(zip(zip(keys, rows, strict=True), old, strict=False))
            if row != before
        }
        added = range(len(self._keys), len(keys))
        changed |= {index: (keys[index], rows[index]) for index in added}
        if changed or len(keys) != len(self._keys) or total != self._total:
            step = _Step(changed, len(self._keys))
            self._keys, self._rows = list(keys), list(rows)
            self._next(step, total)
        return None

    def patch(self, changed: Mapping[int, Row], total: int) -> None:
        """Puts single rows into the content, by index; new ones at its end, without a gap."""
        step = _Step(changed, len(self._keys))
        for index, (key, row) in sorted(changed.items()):
            if index < len(self._keys):
                self._keys[index], self._rows[index] = key, row
            else:
                self._keys.append(key)
                self._rows.append(row)
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
        merged = {index: row for step_ in steps for index, row in step_.rows.items() if index < len(self._keys)}
        if len(merged) > _FEW and len(merged) > len(self._keys) * _MOSTLY:
            return None
        rows = [(index, *merged[index]) for index in sorted(merged)]
        return "delta", delta_body(self._total, rows, max(0, steps[0].size_before - len(self._keys)))

    def _snapshot(self) -> tuple[Literal["snapshot"], str]:
        body = snapshot_body(self.table.generation, self._total, self.offset, self.table.wire, self._keys, self._rows)
        return "snapshot", body
