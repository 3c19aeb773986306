"""The columns of documents: nested objects by path, each with a name of its own and a type."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from liveboard.contract.paths import PathError, parse_path, written_path
from liveboard.contract.schema import TS
from liveboard.inspect.formats import Row
from liveboard.inspect.guess import guess

_DEEPEST = 5
_MOST_COLUMNS = 200
# An object with so many different fields, of which each document has only few, is a dictionary.
_MANY_FIELDS = 30
_FEW = 0.2
# Words that say little without the object around them.
_VAGUE = re.compile(
    r"id|uuid|key|name|type|kind|code|value|version|number|no|status|state|date|time|count|total|unit|ts", re.IGNORECASE
)


@dataclass(frozen=True)
class SeenColumn:
    """A column, and what was seen of it."""

    name: str
    words: tuple[str, ...]
    """Where its values are: the fields to follow from the top."""
    type: str
    unit: str
    remark: str
    values: tuple[Any, ...]
    """One for each document; None where it has none, or one of another type."""
    strays: int
    """How many documents have a value of another type: they would be rejected."""

    @property
    def nulls(self) -> int:
        """How many documents have no value."""
        return sum(value is None for value in self.values) - self.strays


@dataclass(frozen=True)
class FoundColumns:
    """The columns, and the fields that make none."""

    columns: tuple[SeenColumn, ...]
    empty: tuple[tuple[str, ...], ...]
    """Fields that were always null."""
    left_out: tuple[tuple[str, ...], ...]
    """Fields beyond the most that a table has, or whose names no path can have."""


@dataclass(frozen=True)
class _Field:
    words: tuple[str, ...]
    values: tuple[Any, ...]


def columns_of(rows: Sequence[Row]) -> FoundColumns:
    """The columns that hold all values of these documents."""
    fields = {field.words: field for field in _fields(rows, ())}
    empty = [words for words, field in fields.items() if all(value is None for value in field.values)]
    possible = [fields[words] for words in fields if words not in empty and _can_be_path(words)]
    good = _without_doubles(possible)[:_MOST_COLUMNS]
    named = names([field.words for field in good])
    columns = tuple(_column(name, field) for field, name in zip(good, named, strict=True))
    left_out = fields.keys() - empty - {field.words for field in good}
    return FoundColumns(columns, tuple(empty), tuple(words for words in fields if words in left_out))


def _column(name: str, field: _Field) -> SeenColumn:
    seen = [value for value in field.values if value is not None]
    found = guess(field.words[-1], seen)
    values = tuple(value if value is not None and found.has(value) else None for value in field.values)
    strays = len(seen) - sum(value is not None for value in values)
    return SeenColumn(name, field.words, found.type, found.unit, found.remark, values, strays)


def names(paths: Sequence[tuple[str, ...]]) -> list[str]:
    """A name for each path, no two alike in any case: its last word, with as many before it as it takes."""
    chosen: dict[tuple[str, ...], str] = {}
    taken = {TS.name}
    # Fields at the top keep their names, whatever is deeper; the first among equals too.
    for words in sorted(paths, key=len):
        candidates = ["_".join(words[-count:]) for count in range(1, len(words) + 1)]
        if len(words) > 1 and is_vague(words[-1]):
            candidates = candidates[1:]
        whole = candidates[-1] if candidates[-1].lower() != TS.name else f"event_{candidates[-1]}"
        candidates += [whole, *(f"{whole}_{number}" for number in range(2, len(paths) + 3))]
        name = next(name for name in candidates if name.lower() not in taken)
        taken.add(name.lower())
        chosen[words] = name
    return [chosen[words] for words in paths]


def is_vague(word: str) -> bool:
    """Whether the name tells little of what the field holds."""
    return _VAGUE.fullmatch(word) is not None


def _can_be_path(words: tuple[str, ...]) -> bool:
    try:
        return all(map(str.isprintable, words)) and parse_path(written_path(words)) == words
    except PathError:
        return False


def _without_doubles(fields: Sequence[_Field]) -> list[_Field]:
    """Without fields that differ from an earlier one only in case, since Spark takes the two for one."""
    written: dict[tuple[str, ...], tuple[str, ...]] = {}
    kept = []
    for field in fields:
        ways = [field.words[:length] for length in range(1, len(field.words) + 1)]
        if all(written.get(_folded(way), way) == way for way in ways):
            written |= {_folded(way): way for way in ways}
            kept.append(field)
    return kept


def _folded(words: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(word.lower() for word in words)


def _fields(rows: Sequence[Row], at: tuple[str, ...]) -> Iterator[_Field]:
    for name in dict.fromkeys(name for row in rows for name in row):
        values = tuple(row.get(name) for row in rows)
        if len(at) < _DEEPEST and _is_nested([value for value in values if value is not None]):
            yield from _fields([value or {} for value in values], (*at, name))
        else:
            yield _Field((*at, name), values)


def _is_nested(values: Sequence[Any]) -> bool:
    """Whether the values are objects with fields of their own, and not dictionaries under any number of keys."""
    if not values or not all(isinstance(value, dict) for value in values):
        return False
    counts = Counter(name for value in values for name in value)
    rare = sum(counts.values()) < _FEW * len(counts) * len(values)
    return bool(counts) and not (len(counts) > _MANY_FIELDS and rare)
