"""The rows of a live table in columns, in the table's own order, as DuckDB reads them in place.

Rows are found by their position in the table. They are kept in blocks, and a change makes its block anew from the old
one and the few new rows, without looking at the others.
"""

from __future__ import annotations

import itertools
import logging
from array import array
from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Any

import orjson
import pyarrow as pa

from liveboard.arrow import arrow_type
from liveboard.contract.schema import Column
from liveboard.serving.encoders import arrow_array

_BLOCK = 8_192
_IN_PLACE = array("i", range(_BLOCK))

_log = logging.getLogger(__name__)


class ColumnTable:
    """Some columns of a table, for all of its rows."""

    def __init__(self, columns: Sequence[Column], needed: Sequence[str]) -> None:
        self._count = len(columns)
        self._columns = [(place, column) for place, column in enumerate(columns) if column.name in needed]
        self._schema = pa.schema([(column.name, arrow_type(column.kind)) for _, column in self._columns])
        self._blocks: dict[int, _Block] = {}

    def put(self, changes: Iterable[tuple[int, bytes | None]]) -> None:
        """Rows by position, None where one is gone."""
        for number, some in itertools.groupby(sorted(changes, key=itemgetter(0)), lambda change: change[0] // _BLOCK):
            slots = {position % _BLOCK: row for position, row in some}
            fresh = self._batch([row for row in slots.values() if row is not None])
            block = self._blocks.setdefault(number, _Block(self._schema))
            block.put(slots, fresh)
            if block.is_empty:
                del self._blocks[number]

    def arrow(self) -> pa.Table:
        """All rows as they are now."""
        return pa.Table.from_batches([self._blocks[number].rows() for number in sorted(self._blocks)], self._schema)

    def _batch(self, rows: Sequence[bytes]) -> pa.RecordBatch:
        decoded = self._decoded(rows)
        arrays = [arrow_array([row[place] for row in decoded], column) for place, column in self._columns]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _decoded(self, rows: Sequence[bytes]) -> list[list[Any]]:
        try:
            found: list[list[Any]] = orjson.loads(b"[" + b",".join(rows) + b"]")
            return found
        except orjson.JSONDecodeError:
            return [self._decoded_alone(row) for row in rows]

    def _decoded_alone(self, row: bytes) -> list[Any]:
        try:
            return list(orjson.loads(row))
        except orjson.JSONDecodeError as error:
            _log.error("row that SQL cannot see", extra={"reason": str(error)})
            return [None] * self._count


class _Block:
    """Rows side by side; a place whose row is gone keeps the old values, and is left out when one reads."""

    def __init__(self, schema: pa.Schema) -> None:
        self._batch = pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)
        self._gone: set[int] = set()
        self._shown: pa.RecordBatch | None = None

    @property
    def is_empty(self) -> bool:
        return len(self._gone) == len(self._batch)

    def put(self, slots: dict[int, bytes | None], fresh: pa.RecordBatch) -> None:
        """Takes rows by slot; `fresh` has those that are there, in the same order."""
        size = len(self._batch)
        order = _IN_PLACE[:size]
        at = size
        for slot, row in slots.items():
            if row is None:
                if slot < len(order):
                    self._gone.add(slot)
                continue
            while len(order) <= slot:
                self._gone.add(len(order))
                order.append(at)
            order[slot] = at
            self._gone.discard(slot)
            at += 1
        self._shown = None
        if at > size:
            indices = pa.Array.from_buffers(pa.int32(), len(order), [None, pa.py_buffer(order)])
            both = pa.Table.from_batches([self._batch, fresh]).combine_chunks().to_batches()[0]
            self._batch = both.take(indices)

    def rows(self) -> pa.RecordBatch:
        """Those that are there."""
        if self._shown is None:
            self._shown = self._batch
            if self._gone:
                there = pa.array([slot not in self._gone for slot in range(len(self._batch))], pa.bool_())
                self._shown = self._batch.filter(there)
        return self._shown
