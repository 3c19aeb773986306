"""A live table in memory: the changelog's bytes, in the table's own order, found by key.

**The order of rows.** A changelog keeps the last record of a key, so what is read of it at the start comes in the order
of each row's last change, and what a build writes comes key by key; neither is the order of arrival. So rows are in the
order of (ts, length of the key, key), which for the rows of one source partition is the order of arrival: those that
are read before a table is first shown, and those that come later, which overtake each other on their way through Spark
by a few milliseconds. So all replicas have the same order, before and after a restart. What becomes of a row's values
never moves it. Where rows belong to a key of the data (`contract/changelog.py`), `ts` is such a value: there the order
is that of (length of the key, key) alone.

Known limit: a row that comes after LATE_BY_ROWS rows with a later `ts` is appended by the replicas that are running,
for it would move too many, and put in its place by one that starts afterwards. Where rows belong to a key of the data,
so is a new key that belongs before more than the last NEW_KEY_AMONG_ROWS rows: often, since it can belong anywhere.
"""

from __future__ import annotations

import itertools
import operator
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self, cast

import pyarrow as pa
import pyarrow.compute as pc

from liveboard.contract.changelog import BY_KEY, TS_AT
from liveboard.contract.frames import WireColumn, wire_columns
from liveboard.contract.schema import TS, Column

Change = tuple[bytes, bytes | None]
"""A row's key and its new value, or None for its removal."""
Row = tuple[bytes, bytes]
"""A row's key and its value, a JSON array."""

LATE_BY_ROWS = 1_000
NEW_KEY_AMONG_ROWS = 100
_BY_KEY = BY_KEY.encode()
_SORT_SLICE = 10_000
# More removed rows than this are taken out of the lists, which moves all that remain.
_FEW_HOLES = 1_000
_HOLES_PER_ROW = 0.5
# Oldest rows go in steps of this fraction of the cap, since every step moves all rows of all windows.
_EVICTED_AT_ONCE = 0.01


@dataclass(slots=True)
class Applied:
    """What a batch of changes did: by position, the row as it was before, None where there was none."""

    before: dict[int, Row | None] = field(default_factory=dict)
    removed: bool = False
    """Whether rows went away, so that later ones have another index now."""


class Table:
    """Rows by key, in an order of their own.

    A row's *position* is a number that it keeps for as long as it is there; its *index* is how many rows are before it.
    """

    def __init__(
        self,
        name: str,
        generation: str | None,
        columns: Sequence[Column],
        rows: Mapping[bytes, bytes] | None = None,
        max_rows: int = 0,
        has_newest: bool = True,
    ) -> None:
        self.name = name
        self.generation = generation
        self.columns = tuple(columns)
        self.wire: tuple[WireColumn, ...] = wire_columns(columns)
        self.has_ts = self.columns[-1] == TS
        self.has_newest = has_newest
        """Whether its last row is the newest one; that of a view is what its statement puts there."""
        self.updates = len(rows or ())
        self.evicted = 0
        self._max_rows = max_rows
        self._keys: list[bytes | None] = list(rows or ())
        self._rows: list[bytes | None] = list((rows or {}).values())
        self._positions: dict[bytes, int] = {key: at for at, key in enumerate(rows or ())}
        self._base = 0  # the position of what is first in the lists
        self._holes: list[int] = []  # the positions of removed rows, ascending
        self._keep_to_cap()

    @classmethod
    def in_order(
        cls,
        name: str,
        generation: str | None,
        columns: Sequence[Column],
        gathered: dict[bytes, bytes],
        max_rows: int = 0,
    ) -> Self:
        """A table of rows that came in any order; uses the dictionary up, which becomes the table's own."""
        table = cls(name, generation, columns, max_rows=max_rows)
        keys, rows, places = in_order(gathered)
        positions = cast(dict[bytes, int], gathered)
        # In the order in which they came: in any other, each key would be looked for in another part of the memory.
        came = _listed(gathered)
        for at in range(0, len(came), _SORT_SLICE):
            positions.update(zip(came[at : at + _SORT_SLICE], places[at : at + _SORT_SLICE], strict=True))
        table._keys, table._rows = cast(list[bytes | None], keys), cast(list[bytes | None], rows)
        table._positions = positions
        table.updates = len(positions)
        table._keep_to_cap()
        return table

    def __len__(self) -> int:
        return len(self._positions)

    @property
    def end(self) -> int:
        """The position that the next new row gets."""
        return self._base + len(self._rows)

    def apply(self, changes: Iterable[Change]) -> Applied:
        """Puts the changes into the table; a row that is written again as it is counts as no change."""
        applied = Applied()
        before, positions, rows, base = applied.before, self._positions, self._rows, self._base
        new: dict[bytes, bytes] = {}
        for key, row in changes:
            at = positions.get(key)
            if at is None:
                if row is None:
                    new.pop(key, None)
                elif not (self.evicted and self._is_before_all(key, row)):
                    new[key] = row
            elif row is None:
                self._remove(key, at, applied)
            elif (old := rows[at - base]) != row:
                assert old is not None
                before.setdefault(at, (key, old))
                rows[at - base] = row
                self.updates += 1
        if new:
            self._add(new, applied)
        if self._max_rows and len(self) > self._max_rows:
            step = int(self._max_rows * _EVICTED_AT_ONCE)
            self._evict(len(self) - self._max_rows + step, applied)
        if len(self._holes) > max(_FEW_HOLES, len(self) * _HOLES_PER_ROW):
            self._close_holes(applied)
        return applied

    def become(self, count: int, rows: Sequence[tuple[int, bytes, bytes]]) -> Applied:
        """Puts rows at their index and ends behind `count`: for a table without holes, whose order is another's."""
        applied = Applied(removed=count < len(self._rows))
        there = len(self._rows)
        rows = [row for row in rows if row[0] >= there or (self._keys[row[0]], self._rows[row[0]]) != row[1:]]
        for at in {index for index, _, _ in rows if index < there} | set(range(count, there)):
            key, row = self._keys[at], self._rows[at]
            assert key is not None
            assert row is not None
            applied.before[at] = (key, row)
            del self._positions[key]
        del self._keys[count:], self._rows[count:]
        for index, key, row in rows:
            if index < len(self._rows):
                self._keys[index], self._rows[index] = key, row
            else:
                applied.before[index] = None
                self._keys.append(key)
                self._rows.append(row)
            self._positions[key] = index
        self.updates += len(rows)
        return applied

    def window(self, offset: int, size: int) -> tuple[list[bytes], list[bytes]]:
        """The keys and the values of up to `size` rows from index `offset` on."""
        start = self.position_at(offset) - self._base
        stop = self.position_at(offset + size) - self._base
        keys, rows = self._keys[start:stop], self._rows[start:stop]
        return [key for key in keys if key is not None], [row for row in rows if row is not None]

    def row(self, position: int) -> Row | None:
        """The row at a position; None if it is not there any more."""
        at = position - self._base
        if at < 0 or at >= len(self._rows):
            return None
        key, row = self._keys[at], self._rows[at]
        return None if key is None or row is None else (key, row)

    def find(self, key: bytes) -> bytes | None:
        """The row of a key; None if there is none."""
        at = self._positions.get(key)
        return None if at is None else self._rows[at - self._base]

    def rows(self) -> tuple[int, list[bytes | None]]:
        """All values as of now, None where a row was removed, and the position of the first."""
        return self._base, self._rows.copy()

    def some_from(self, position: int, size: int) -> tuple[list[bytes], list[bytes], int]:
        """The keys and the values of rows from a position on, and where the next ones begin.

        Whoever goes on from there until the end has met every row that was there all the time, some perhaps twice.
        """
        start = max(0, position - self._base)
        keys, rows = self._keys[start : start + size], self._rows[start : start + size]
        return (
            [key for key in keys if key is not None],
            [row for row in rows if row is not None],
            self._base + start + size,
        )

    def index_of(self, position: int) -> int:
        """How many rows are before a position."""
        return position - self._base - bisect_left(self._holes, position)

    def position_at(self, index: int) -> int:
        """The position of the row at an index; behind the last row, the table's end."""
        # holes[i] - i is the position that a row would have with the same index and no hole before it
        position = self._base + index
        holes = self._holes
        skipped = bisect_right(range(len(holes)), position, key=lambda i: holes[i] - i) if holes else 0
        return min(position + skipped, self.end)

    def _add(self, new: dict[bytes, bytes], applied: Applied) -> None:
        """Puts new rows behind all others, or among the last ones where they belong."""
        if self.has_ts and not self._come_in_order(new):
            self._add_among(new, applied)
        else:
            self._append(new, applied)
        self.updates += len(new)

    def _come_in_order(self, new: dict[bytes, bytes]) -> bool:
        """Whether each belongs behind all before it, as their times alone tell."""
        if next(iter(new))[:1] == _BY_KEY:
            return False
        times = [row[TS_AT] for row in (*filter(None, self._rows[-1:]), *new.values())]
        return all(map(operator.lt, times, times[1:]))

    def _append(self, new: dict[bytes, bytes], applied: Applied) -> None:
        added = range(self.end, self.end + len(new))
        self._keys += new
        self._rows += new.values()
        self._positions.update(zip(new, added, strict=True))
        # Of a row that was removed in this batch, what was at its position is known already.
        applied.before = {**dict.fromkeys(added), **applied.before}

    def _add_among(self, new: dict[bytes, bytes], applied: Applied) -> None:
        """Each is brought to its place among those that came shortly before it; all are moved at once."""
        most = NEW_KEY_AMONG_ROWS if next(iter(new))[:1] == _BY_KEY else LATE_BY_ROWS
        tail = _Tail(self._keys, self._rows, self._last_places(most + 1), most)
        for key, row in new.items():
            tail.insert(key, row)
        places = tail.looked_at[tail.unmoved :]
        before = {self._base + at: self.row(self._base + at) for at in places}
        added = range(len(self._rows), len(self._rows) + len(new))
        self._append(new, applied)
        applied.before = {**before, **applied.before}
        moved = zip([*places, *added], tail.keys[tail.unmoved :], tail.rows[tail.unmoved :], strict=True)
        for at, key, row in moved:
            self._keys[at], self._rows[at], self._positions[key] = key, row, self._base + at

    def _last_places(self, count: int) -> Sequence[int]:
        """Where the last rows are in the lists, in their order."""
        end = len(self._rows)
        if not self._holes or self._holes[-1] < self.end - count:
            return range(max(0, end - count), end)
        there = (at for at in range(end - 1, -1, -1) if self._rows[at] is not None)
        return list(itertools.islice(there, count))[::-1]

    def _remove(self, key: bytes, position: int, applied: Applied) -> None:
        at = position - self._base
        row = self._rows[at]
        assert row is not None
        applied.before.setdefault(position, (key, row))
        applied.removed = True
        del self._positions[key]
        self._keys[at] = self._rows[at] = None
        self._holes.insert(bisect_left(self._holes, position), position)
        while self._holes and self._holes[-1] == self.end - 1:
            del self._keys[-1], self._rows[-1], self._holes[-1]
        self.updates += 1

    def _close_holes(self, applied: Applied) -> None:
        """Gives every row a new position, behind all that there were, so that removed rows take no room."""
        kept = [(at, key, row) for at, (key, row) in enumerate(zip(self._keys, self._rows, strict=True), self._base)]
        self._base = self.end
        self._keys, self._rows, self._holes = [], [], []
        for at, key, row in kept:
            if key is not None and row is not None:
                applied.before.setdefault(at, (key, row))
                applied.before.setdefault(self.end, None)
                self._positions[key] = self.end
                self._keys.append(key)
                self._rows.append(row)
        applied.removed = True

    def _keep_to_cap(self) -> None:
        if self._max_rows and len(self) > self._max_rows:
            self._evict(len(self) - self._max_rows, Applied())

    def _evict(self, count: int, applied: Applied) -> None:
        """Takes away the oldest rows, and the holes among them."""
        stop = self.position_at(count) - self._base
        for at in range(stop):
            key, row = self._keys[at], self._rows[at]
            if key is not None and row is not None:
                applied.before.setdefault(self._base + at, (key, row))
                del self._positions[key]
        del self._keys[:stop], self._rows[:stop]
        self._base += stop
        del self._holes[: bisect_left(self._holes, self._base)]
        self.evicted += count
        applied.removed = True

    def _is_before_all(self, key: bytes, row: bytes) -> bool:
        """Whether the row can only be a change to one that was evicted."""
        first = self.row(self.position_at(0)) if self.has_ts and len(self) else None
        if first is None:
            return False
        return _ordinal(key, row) < _ordinal(*first) if key[:1] == _BY_KEY else row[TS_AT] < first[1][TS_AT]


class _Tail:
    """The last rows of a table, as far back as new ones belong, with the new ones among them."""

    def __init__(
        self, keys: Sequence[bytes | None], rows: Sequence[bytes | None], places: Sequence[int], most: int
    ) -> None:
        """`places` are where rows are in the lists; a row that belongs before more than `most` others is appended."""
        self._of_table = keys, rows
        self._places = places
        self._most = most
        self.looked_at: Sequence[int] = places[len(places) :]
        """The places of those that were there already."""
        self.unmoved = 0
        """How many of them are where they were."""
        self.keys: list[bytes] = []
        self.rows: list[bytes] = []

    def insert(self, key: bytes, row: bytes) -> None:
        """Puts a new row where it belongs.

        It is looked for from the end on, so it does not matter which others were put in at once with it: all replicas
        come to the same order.
        """
        ordinal, nearest, furthest = _ordinal(key, row), 0, 1
        while furthest <= self._most and self._is_behind(furthest, ordinal):
            nearest, furthest = furthest, 2 * furthest
        furthest = min(furthest, self._most + 1)
        self._cover(furthest)
        end = len(self.keys)
        at = bisect_left(range(end), ordinal, max(0, end - furthest), end - nearest, key=self._ordinal_at)
        if end - at > self._most:
            at = end
        self.keys.insert(at, key)
        self.rows.insert(at, row)
        self.unmoved = min(self.unmoved, at)

    def _is_behind(self, distance: int, ordinal: tuple[bytes, int, bytes]) -> bool:
        """Whether there is a row at that distance from the end, and it belongs behind this one."""
        self._cover(distance)
        return distance <= len(self.keys) and self._ordinal_at(-distance) > ordinal

    def _ordinal_at(self, at: int) -> tuple[bytes, int, bytes]:
        return _ordinal(self.keys[at], self.rows[at])

    def _cover(self, distance: int) -> None:
        """Looks at rows up to that distance from the end, where there are so many."""
        missing = distance - len(self.keys)
        if missing <= 0 or len(self.looked_at) == len(self._places):
            return
        looked_at = self._places[-(len(self.looked_at) + missing) :]
        more = looked_at[: len(looked_at) - len(self.looked_at)]
        for mine, of_table in zip((self.keys, self.rows), self._of_table, strict=True):
            mine[:0] = [cast(bytes, of_table[at]) for at in more]
        self.unmoved += len(more)
        self.looked_at = looked_at


def in_order(rows: Mapping[bytes, bytes]) -> tuple[list[bytes], list[bytes], Sequence[int]]:
    """The keys and the values in the table's order; and each row's place in it, in the order in which they came."""
    keys, values = _listed(rows), _listed(rows.values())
    if _are_in_order(keys, values):
        return keys, values, range(len(keys))
    # Sorted by Arrow, which lets other threads run meanwhile; Python's own sort does not. Its arrays are made of
    # buffers, since it would first import pandas to look at a list.
    arrays = []
    for ordinals in _ordinals(keys, values):
        ends = array("i", itertools.accumulate(map(len, ordinals), initial=0))
        buffers = [None, pa.py_buffer(ends), pa.py_buffer(b"".join(ordinals))]
        arrays.append(pa.Array.from_buffers(pa.binary(), len(ordinals), buffers))
    found = pc.sort_indices(pa.chunked_array(arrays))
    del arrays
    order = memoryview(found.buffers()[1]).cast("Q")
    # An order is a permutation, and what sorts a permutation is its inverse.
    places = memoryview(pc.sort_indices(found).buffers()[1]).cast("Q")
    return _taken(keys, order), _taken(values, order), places


def _taken(items: Sequence[bytes], order: memoryview) -> list[bytes]:
    """The items in that order, taken in steps between which other threads can run."""
    taken: list[bytes] = []
    for at in range(0, len(order), _SORT_SLICE):
        taken += map(items.__getitem__, order[at : at + _SORT_SLICE])
    return taken


def _listed(items: Iterable[bytes]) -> list[bytes]:
    """The items, listed in steps between which other threads can run."""
    listed: list[bytes] = []
    rest = iter(items)
    while some := list(itertools.islice(rest, _SORT_SLICE)):
        listed += some
    return listed


def _are_in_order(keys: Sequence[bytes], values: Sequence[bytes]) -> bool:
    if keys and keys[0][:1] == _BY_KEY:
        last = b""
        for ordinals in _ordinals(keys, values):
            if last > ordinals[0] or not all(map(operator.le, ordinals, ordinals[1:])):
                return False
            last = ordinals[-1]
        return True
    # Of most rows the time alone tells, which is much cheaper to compare.
    for at in range(0, len(keys), _SORT_SLICE):
        times = [row[TS_AT] for row in values[at : at + _SORT_SLICE + 1]]
        for doubtful in itertools.compress(itertools.count(at), map(operator.ge, times, times[1:])):
            if _ordinal(keys[doubtful], values[doubtful]) > _ordinal(keys[doubtful + 1], values[doubtful + 1]):
                return False
    return True


def _ordinal(key: bytes, row: bytes) -> tuple[bytes, int, bytes]:
    """What the order is made of."""
    return b"" if key[:1] == _BY_KEY else row[TS_AT], len(key), key


def _ordinals(keys: Sequence[bytes], values: Sequence[bytes]) -> Iterator[list[bytes]]:
    """The same in slices, and as texts that compare alike."""
    for at in range(0, len(keys), _SORT_SLICE):
        some = slice(at, at + _SORT_SLICE)
        lengths = {length: length.to_bytes(4) for length in set(map(len, keys[some]))}
        yield [
            (b"" if key[:1] == _BY_KEY else row[TS_AT]) + lengths[len(key)] + key
            for key, row in zip(keys[some], values[some], strict=True)
        ]
