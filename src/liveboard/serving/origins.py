"""Where the tables of a generation come from: which sources each is made of, and how."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from starlette.exceptions import HTTPException

from liveboard.contract.board import is_by_key
from liveboard.contract.errors import either
from liveboard.contract.formats import FORMATS, FormatName
from liveboard.contract.names import ALERTS_TABLE, CONTROL_TABLE, REJECTS_TABLE, STATUS_TABLE
from liveboard.contract.schema import TS, Column
from liveboard.contract.status import GenerationRecord

_OWN_KINDS = {REJECTS_TABLE: "rejects", CONTROL_TABLE: "control", STATUS_TABLE: "status", ALERTS_TABLE: "alert"}


@dataclass(frozen=True)
class Origin:
    """What a table is made of: one source, or the left and the right one of a join."""

    sources: tuple[str, ...]
    how: str = ""
    """The kind of the join; empty for the table of a source."""
    on: str = ""


class Origins:
    """Of one generation, by what is on record about it; empty where the record does not tell."""

    def __init__(self, record: GenerationRecord | None) -> None:
        self._record = record
        described: Mapping[str, Any] = record.fingerprint if record else {}
        self.tables: dict[str, str] = {name: source["table"] for name, source in described.get("sources", {}).items()}
        """The table of each source."""
        self._sources: Mapping[str, Any] = described.get("sources", {})
        self._joins: Mapping[str, Any] = described.get("joins", {})

    def topic(self, source: str) -> str | None:
        """The topic that a source reads."""
        return self._record.wiring.topics.get(source) if self._record else None

    def source_of_topic(self, topic: str) -> str | None:
        """The source that reads a topic."""
        topics = self._record.wiring.topics if self._record else {}
        return next((source for source, read in topics.items() if read == topic), None)

    def is_by_key(self, source: str) -> bool:
        """Whether the table of a source has one row for each key."""
        return is_by_key(self._sources.get(source, {}).get("mode", "append"), self.format(source))

    def key(self, source: str) -> tuple[str, ...]:
        """The columns that tell the rows of a table by key apart."""
        return tuple(self._sources.get(source, {}).get("key", ()))

    def columns(self, source: str) -> tuple[Column, ...]:
        """What a source's records are expected to have."""
        if described := self._sources.get(source, {}).get("columns"):
            return tuple(msgspec.convert(column, Column) for column in described)
        table = self._record.tables.get(self.tables.get(source, ""), ()) if self._record else ()
        return tuple(column for column in table if column != TS)

    def format(self, source: str) -> FormatName:
        """How the values of a source are written; an error if the pipeline is newer and knows more formats."""
        found: FormatName = self._sources.get(source, {}).get("format", "json")
        if found not in FORMATS:
            raise HTTPException(503, f'{source}: expected {either(FORMATS)}, found "{found}": this server is too old')
        return found

    def kind(self, table: str) -> str:
        """What a table is: source, rejects, control, status, or as the section is called that describes it: a join."""
        if table in self.tables.values():
            return "source"
        for section, named in (self._record.fingerprint if self._record else {}).items():
            if section != "sources" and isinstance(named, Mapping) and table in named:
                return section.removesuffix("s")
        return _OWN_KINDS.get(table, "")

    def of(self, table: str) -> Origin | None:
        """What a table is made of; None for the rejects, and where nothing tells."""
        for source, own in self.tables.items():
            if own == table:
                return Origin((source,))
        join = self._joins.get(table)
        if join is None or self._record is None:
            return None
        return Origin((join["left"], join["right"]), self._record.wiring.joins.get(table, ""), join["on"])
