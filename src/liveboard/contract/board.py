"""A board: the sources that are read, and the joins and aggregates that are made of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

import msgspec

from liveboard.contract.formats import FORMATS, FormatName
from liveboard.contract.joins import JoinKind
from liveboard.contract.names import DEFAULT_BOARD_NAME
from liveboard.contract.schema import Column, parse_schema

SourceMode = Literal["append", "upsert"]
"""Whether every record is a row, or the newest record of a key is the key's row: a table by key."""

LARGEST_VALUE_BYTES = 8_388_608
"""The largest limit that a source can have for its values."""

History = int | Literal["all"]
"""How many records of a key are remembered."""


class Wiring(msgspec.Struct, frozen=True):
    """Which topic every source reads and how every join joins: what a swap changes."""

    topics: Mapping[str, str]
    joins: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Source:
    """A topic, what its values look like, and the table that shows its rows."""

    name: str
    topic: str
    table: str
    schema: str = ""
    """The columns as one text, each in the field of its name; empty where `columns` are given instead."""
    columns: tuple[Column, ...] = ()
    """The columns, without ts."""
    format: FormatName = "json"
    avro_schema_file: str = ""
    """The schema of Avro values that have no registry's header."""
    on_error: Literal["reject", "null"] = "reject"
    max_value_bytes: int = 1_048_576
    mode: SourceMode = "append"
    key: tuple[str, ...] = ()
    """The columns that tell the rows of a table by key apart."""

    @property
    def by_key(self) -> bool:
        """Whether its table has one row for each key, which later records change and remove."""
        return is_by_key(self.mode, self.format)

    def is_strict(self, column: Column) -> bool:
        """Whether a wrong value refuses the record. A key is never made null: the row would be another one."""
        return self.on_error == "reject" or column.name in self.key

    def __post_init__(self) -> None:
        if self.schema:
            object.__setattr__(self, "columns", parse_schema(self.schema))


def is_by_key(mode: SourceMode, format: FormatName) -> bool:
    """Whether the table of such a source is one by key."""
    return mode == "upsert" or FORMATS[format].is_by_key


@dataclass(frozen=True, kw_only=True)
class Join:
    """A table, named like the join, of two sources joined on a column of both.

    Each row has the time of its left record. In all but inner joins the left source has the rows and the right one
    enriches them.
    """

    name: str
    left: str
    right: str
    on: str
    how: JoinKind
    history: History | None = None
    """How many of a key's newest records each side remembers; None: as many as joins of its kind usually need."""


@dataclass(frozen=True, kw_only=True)
class Aggregate:
    """A table, named like the aggregate, with one row for each group of a source's records."""

    name: str
    source: str
    measures: Mapping[str, str]
    """Column to what it is, as `sum(balance)`; `contract/aggregates.py` says what can be there."""
    by: tuple[str, ...] = ()
    """The columns whose values make a group; with none, all records are one."""
    where: str = ""
    """Which records count; all of them where it is empty."""
    window: int = 0
    """The length of the windows of time into which groups are divided, in milliseconds; 0: there are no windows."""
    slide: int = 0
    """How long after each other windows begin; 0: when the one before ends."""
    keep: int = 0
    """How long windows stay after their end, by the newest time in such aggregates of the board; 0: for ever."""


@dataclass(frozen=True, kw_only=True)
class Alert:
    """What is told about the rows of a table that begin, and stop, to fulfil conditions."""

    name: str
    table: str
    when: tuple[tuple[Any, ...], ...]
    """A filter, as windows have it."""
    notify: tuple[str, ...] = ()
    """Who is told beside the board's own topic: topic:NAME, or an address for a POST."""


@dataclass(frozen=True, kw_only=True)
class View:
    """A table that servers make of others with SQL; `key` names the columns that tell its rows apart."""

    name: str
    sql: str
    key: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Board:
    """Sources, joins and aggregates, by name; the board's own name tells its topics from those of other boards."""

    name: str = DEFAULT_BOARD_NAME
    sources: Mapping[str, Source] = field(default_factory=dict)
    joins: Mapping[str, Join] = field(default_factory=dict)
    aggregates: Mapping[str, Aggregate] = field(default_factory=dict)
    alerts: Mapping[str, Alert] = field(default_factory=dict)
    views: Mapping[str, View] = field(default_factory=dict)

    @property
    def wiring(self) -> Wiring:
        """Its topics and kinds of joins."""
        topics = {name: source.topic for name, source in self.sources.items()}
        return Wiring(topics, {name: join.how for name, join in self.joins.items()})

    def wired(self, wiring: Wiring) -> Self:
        """The same board with another wiring."""
        sources = {name: replace(source, topic=wiring.topics[name]) for name, source in self.sources.items()}
        hows: dict[str, Any] = dict(wiring.joins)
        joins = {name: replace(join, how=hows[name]) for name, join in self.joins.items()}
        return replace(self, sources=sources, joins=joins)

    @property
    def shape(self) -> Self:
        """The same board as far as its rows go: boards of one shape differ only in where they read and write."""
        here = Wiring({name: name for name in self.sources}, self.wiring.joins)
        return replace(self.wired(here), name=DEFAULT_BOARD_NAME, alerts={}, views={})

    def fits(self, wiring: Wiring) -> bool:
        """Whether the wiring is one of this board, and not of one that was configured before."""
        return wiring.topics.keys() == self.sources.keys() and wiring.joins.keys() == self.joins.keys()
