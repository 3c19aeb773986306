"""The description of a topic, made from some of its records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from liveboard.contract.errors import LiveboardError
from liveboard.contract.types import column_type
from liveboard.inspect.columns import SeenColumn, columns_of
from liveboard.inspect.formats import FoundFormat, Row, SampledRecord, key_fields, read, schema_ids
from liveboard.inspect.guess import words

READABLE = (FoundFormat.JSON, FoundFormat.DEBEZIUM)
_LONGEST_EXAMPLE = 200

Key = Row | str
"""A Kafka key: its fields, or its text."""


@dataclass(frozen=True, kw_only=True)
class Topic:
    """What was found in a topic."""

    name: str
    format: FoundFormat
    records: int
    tombstones: int
    others: int
    """Records of another format than most: they would be rejected."""
    columns: tuple[SeenColumn, ...] = ()
    empty: tuple[tuple[str, ...], ...] = ()
    """Fields that were always null."""
    left_out: tuple[tuple[str, ...], ...] = ()
    """Fields that cannot be columns."""
    key: tuple[str, ...] = ()
    """The columns that the Kafka key has the values of."""
    unique: str = ""
    """A column whose values all differ."""
    is_table: bool = False
    """Whether a record replaces the one before of its key: the topic is compacted, has tombstones, or is Debezium's."""
    row_key: tuple[str, ...] = ()
    """The columns that tell the rows of such a table apart."""
    kafka_key_column: str = ""
    """The column that has to be made of the Kafka key, for a table by key whose rows do not have it."""
    repeated: bool = False
    """Whether several records have the same Kafka key."""
    header_names: tuple[str, ...] = ()
    schema_ids: tuple[int, ...] = ()
    example: str = ""

    @property
    def has_columns(self) -> bool:
        """Whether a board can show it."""
        return bool(self.columns)

    def column(self, name: str) -> SeenColumn | None:
        """The column of this name."""
        return next((column for column in self.columns if column.name == name), None)

    def values(self, name: str) -> list[Any]:
        """What was seen in the column, without nulls."""
        column = self.column(name)
        return [value for value in column.values if value is not None] if column else []

    def is_one_per_key(self, name: str) -> bool:
        """Whether there is one row for each value of the column."""
        if self.is_table:
            return self.row_key == (name,)
        values = self.values(name)
        return len(values) > 1 and len(set(values)) == len(values)


def describe(name: str, records: Sequence[SampledRecord], *, compacted: bool = False) -> Topic:
    """What these records say about the topic; a LiveboardError where there are none with a value."""
    seen = [(record, *read(record.value)) for record in records if record.value is not None]
    if not seen:
        what = "only tombstones" if records else "none"
        raise LiveboardError(f"{name}: expected records to look at, found {what}; produce some and try again")
    format_, most = Counter(format_ for _, format_, _ in seen).most_common(1)[0]
    tombstones = len(records) - len(seen)
    same = [(record, row) for record, its, row in seen if its is format_]
    if format_ not in READABLE:
        values = [record.value or b"" for record, _ in same]
        return Topic(
            name=name,
            format=format_,
            records=len(records),
            tombstones=tombstones,
            others=len(seen) - most,
            schema_ids=tuple(schema_ids(values)) if format_ is FoundFormat.AVRO else (),
            example=values[0][:_LONGEST_EXAMPLE].decode(errors="replace"),
        )
    rows = [row for _, row in same if row is not None]
    keys = [key_fields(record.key) for record, row in same if row is not None]
    found = columns_of(rows)
    known = [key for key in keys if key is not None]
    key = _key_columns(found.columns, known) if known and len(known) == len(keys) else ()
    # Rows without their key can still have it from Kafka, where it is a plain text.
    are_texts = bool(keys) and all(isinstance(key, str) and not key.startswith('"') for key in keys)
    is_table = format_ is FoundFormat.DEBEZIUM or ((compacted or tombstones > 0) and bool(key or are_texts))
    row_key, kafka_key_column = _row_key(found.columns, key, are_texts=are_texts) if is_table else ((), "")
    return Topic(
        name=name,
        format=format_,
        records=len(records),
        tombstones=tombstones,
        others=len(seen) - most,
        columns=found.columns,
        empty=found.empty,
        left_out=found.left_out,
        key=key,
        unique=_unique(found.columns),
        is_table=is_table,
        row_key=row_key,
        kafka_key_column=kafka_key_column,
        repeated=len(set(map(_hashable, known))) < len(known),
        header_names=tuple(sorted({header for record in records for header in record.headers})),
    )


def can_be_key(column: SeenColumn) -> bool:
    """Whether the column is proposed as the key of a join or of a table by key."""
    kind = column_type(column.type)
    # An amount could be a key, but nobody means it to be one.
    is_amount = kind.name == "decimal" and kind.parameters[1] > 0
    return not kind.not_a_key and not is_amount


def _key_columns(columns: Sequence[SeenColumn], keys: Sequence[Key]) -> tuple[str, ...]:
    """The columns that every record's Kafka key has the values of."""
    if all(isinstance(key, str) for key in keys):
        equal = (c for c in columns if can_be_key(c) and all(map(_is_text_of, keys, c.values)))
        return tuple(column.name for column in equal)[:1]
    fields = [key if isinstance(key, dict) else {} for key in keys]
    names = fields[0].keys()
    at_top = {c.words[0]: c for c in columns if len(c.words) == 1 and can_be_key(c)}
    if not names or any(key.keys() != names for key in fields) or not names <= at_top.keys():
        return ()
    same = all(at_top[name].values[row] == key[name] for row, key in enumerate(fields) for name in names)
    return tuple(at_top[name].name for name in names) if same else ()


def _is_text_of(key: Key, value: Any) -> bool:
    return value is not None and not isinstance(value, bool) and key in (str(value), f'"{value}"')


def _row_key(columns: Sequence[SeenColumn], key: tuple[str, ...], *, are_texts: bool) -> tuple[tuple[str, ...], str]:
    """The columns that tell rows apart, and the one of them that has to be made of the Kafka key."""
    if key:
        return key, ""
    if are_texts:
        name = free_name("key", {column.name for column in columns})
        return (name,), name
    always = [column.name for column in columns if can_be_key(column) and not column.nulls]
    return tuple([name for name in always if words(name)[-1:] == ["id"]] or always)[:1], ""


def _unique(columns: Sequence[SeenColumn]) -> str:
    for column in columns:
        if can_be_key(column) and not column.nulls and len(set(column.values)) == len(column.values) > 1:
            return column.name
    return ""


def free_name(name: str, taken: set[str]) -> str:
    """The name, or the name with a number where it is taken; case does not count."""
    lower = {other.lower() for other in taken}
    numbered = (f"{name}_{number}" for number in count(2))
    return name if name.lower() not in lower else next(other for other in numbered if other.lower() not in lower)


def _hashable(key: Key) -> Any:
    return key if isinstance(key, str) else repr(sorted(key.items()))
