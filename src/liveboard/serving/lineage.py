"""Where a row comes from: the source records behind it, read from Kafka.

A row's key has the positions of its records. That of a left or an as-of join has the left one's only; the right one is
then found in the right source's table, by the join's own rule. The row of a table by key has its key and the time of
the newest record of it, which is searched for among the records of that time.

Who sees what: a record's place is shown to keys that show the table of its source. Its raw text may have fields that no
table shows, so it is shown to keys that show `rejects_ui` too, where raw texts are shown already.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

import msgspec
import orjson
from starlette.exceptions import HTTPException

from liveboard.contract.changelog import BY_KEY, TS_AT, timestamp_text
from liveboard.contract.frames import WireColumn
from liveboard.contract.joins import JOINS
from liveboard.contract.names import REJECTS_TABLE
from liveboard.serving import records
from liveboard.serving.auth import Grant
from liveboard.serving.catalogue import Catalogue
from liveboard.serving.origins import Origin, Origins
from liveboard.serving.records import FoundRecord, Lookups, Position, Sought
from liveboard.serving.table import Table

_PLACE = re.compile(r"([0-9]{1,10})-([0-9]{1,19})")
# A position after the colon, if any: the JSON of a key may have colons too, but never ends like this.
_PARTS = re.compile(r"(.+?)(?::([0-9]{1,10}-[0-9]{1,19}))?", re.DOTALL)
_PLAIN = re.compile(r"[A-Za-z0-9 _.:@+-]+")
_SHOWN_BYTES = 256 * 1024
_NOT_TOLD = "its source records are not told by its key"

_Place = Position | Sought | str
"""Where a record is, or why that cannot be told."""


class SourceRecord(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A record that a row was made of; what is not known or not shown is left out, and `note` says why."""

    source: str | None = None
    topic: str | None = None
    partition: int | None = None
    offset: int | None = None
    ts: str | None = None
    key: str | None = None
    value: str | None = None
    encoding: str = ""
    """"base64" where the value is no text."""
    note: str = ""


class Explained(msgspec.Struct, kw_only=True):
    """A row, whole, and where it comes from."""

    table: str
    generation: str | None
    key: str
    columns: tuple[WireColumn, ...]
    row: msgspec.Raw
    how: str = ""
    """The kind of the join that made it; empty for the table of a source."""
    on: str = ""
    sources: list[SourceRecord] = []
    hidden: int = 0
    """How many of its records the key does not show."""
    note: str = ""


class Lineage:
    """Explains rows; belongs to the event loop, and reads Kafka beside it."""

    def __init__(self, catalogue: Catalogue, lookups: Lookups, client_config: Mapping[str, str]) -> None:
        self._catalogue = catalogue
        self._lookups = lookups
        self._client_config = client_config

    async def explain(self, grant: Grant, name: str, key: str, generation: str | None = None) -> Explained:
        """The row and its records; an error as for every table that the key does not show."""
        table = self._catalogue.find(grant, name, generation)
        row = table.find(key.encode("utf-8", "surrogatepass"))
        if row is None:
            raise HTTPException(404, f'expected the key of a row of {name}, found "{key[:100]}"; it may be gone')
        explained = Explained(
            table=table.name, generation=table.generation, key=key, columns=table.wire, row=msgspec.Raw(row)
        )
        if table.generation is None:
            return explained
        status = self._catalogue.status
        origins = Origins(status.generations.get(table.generation) if status else None)
        if table.name == REJECTS_TABLE:
            explained.sources = await self._rejected(grant, origins, row)
            return explained
        origin = origins.of(table.name)
        if origin is None:
            explained.note = _NOT_TOLD
            return explained
        shown = [source for source in origin.sources if grant.shows(origins.tables[source])]
        explained.hidden = len(origin.sources) - len(shown)
        if not explained.hidden:
            explained.how, explained.on = origin.how, origin.on
        places = await self._places(grant, table, key, row, origin, origins)
        wanted = [(source, place) for source, place in zip(origin.sources, places, strict=True) if source in shown]
        explained.sources = await self._read(grant, origins, wanted)
        return explained

    async def _rejected(self, grant: Grant, origins: Origins, row: bytes) -> list[SourceRecord]:
        topic, partition, offset = orjson.loads(row)[:3]
        [record] = await self._lookups.run(
            grant.name, partial(records.read, self._client_config, [Position(topic, partition, int(offset))])
        )
        return [_shown(origins.source_of_topic(topic), topic, record, is_raw=True)]

    async def _places(
        self, grant: Grant, table: Table, key: str, row: bytes, origin: Origin, origins: Origins
    ) -> list[_Place]:
        """Of each source where its record is, or why that cannot be told."""
        parts = _PARTS.fullmatch(key) if len(origin.sources) > 1 else None
        left, right = parts.groups() if parts else (key, None)
        told = [_place(origins, origin.sources[0], left, row)]
        if right is not None:
            told.append(_place(origins, origin.sources[1], right, row))
        elif len(origin.sources) > 1:
            told.append(await self._right(grant, table, row, origin, origins))
        return told

    async def _right(self, grant: Grant, table: Table, row: bytes, origin: Origin, origins: Origins) -> _Place:
        """The right record where the key does not tell it: the newest of the join key, for as-of not after the row."""
        source, kind = origin.sources[1], JOINS.get(origin.how)
        if kind is None or not grant.shows(origins.tables[source]):
            return _NOT_TOLD
        right = self._catalogue.find(grant, origins.tables[source], table.generation)
        values = orjson.loads(row)
        names = [column.name for column in right.columns]
        on = values[[column.name for column in table.columns].index(origin.on)]
        if on is None:
            return f"no record of {source}: the row's {origin.on} is null, which matches nothing"
        until = row[TS_AT] if kind.matches_in_time else None
        first, rows = right.rows()
        at = await self._lookups.run(grant.name, partial(_newest, rows, names.index(origin.on), on, until))
        found = [found for place in at if (found := right.row(first + place))]
        if not found:
            if until and origins.is_by_key(source):
                return f"{right.name} shows only the newest record of this {origin.on}, which came after the row"
            gone = "; the table does not hold all rows any more" if right.evicted else ""
            when = " up to the row's time" if until else ""
            return f"no record of {source} with this {origin.on}{when}{gone}"
        places = [_place(origins, source, key.decode(), row) for key, row in found]
        positions = [place for place in places if isinstance(place, Position)]
        return max(positions) if positions else places[0]

    async def _read(self, grant: Grant, origins: Origins, wanted: Sequence[tuple[str, _Place]]) -> list[SourceRecord]:
        places = [place for _, place in wanted if not isinstance(place, str)]
        read = await self._lookups.run(grant.name, partial(records.read, self._client_config, places))
        by_place = dict(zip(places, read, strict=True))
        is_raw = grant.shows(REJECTS_TABLE)
        return [
            SourceRecord(source=source, topic=origins.topic(source), note=place)
            if isinstance(place, str)
            else _shown(source, place.topic, by_place[place], is_raw)
            for source, place in wanted
        ]


def _place(origins: Origins, source: str, key: str, row: bytes) -> _Place:
    """Where the record of a row is, by its key: at a position, or among the records of the row's time."""
    topic = origins.topic(source)
    if topic is None:
        return _NOT_TOLD
    if found := _PLACE.fullmatch(key):
        return Position(topic, int(found[1]), int(found[2]))
    if not key.startswith(BY_KEY):
        return _NOT_TOLD
    at = datetime.fromisoformat(row[TS_AT].decode())
    values = tuple(text for _, text in records.fields(f"[{key.removeprefix(BY_KEY)}]".encode()))
    return Sought(topic, round(at.timestamp() * 1000), values, origins.key(source))


def _newest(rows: Sequence[bytes | None], on: int, value: Any, until: bytes | None) -> list[int]:
    """Where in the list the newest rows of a join key are; several where they have the same time."""
    # What Spark writes as orjson does can be told at a glance; all else is decoded.
    needle = orjson.dumps(value) if isinstance(value, int) or _PLAIN.fullmatch(str(value)) else b""
    newest = b""
    found: list[int] = []
    for at, row in enumerate(rows):
        if row is None or (needle and needle not in row):
            continue
        ts = row[TS_AT]
        if ts < newest or (until is not None and ts > until) or orjson.loads(row)[on] != value:
            continue
        if ts > newest:
            newest, found = ts, []
        found.append(at)
    return found


def _shown(source: str | None, topic: str, record: FoundRecord, is_raw: bool) -> SourceRecord:
    position = record.position
    shown = SourceRecord(
        source=source,
        topic=topic,
        partition=position.partition if position else None,
        offset=position.offset if position else None,
        ts=None if record.timestamp_ms is None else timestamp_text(record.timestamp_ms),
        note=record.problem,
    )
    if record.problem:
        return shown
    if not is_raw:
        shown.note = f"the raw record is shown to keys that show {REJECTS_TABLE}"
        return shown
    shown.key = None if record.key is None else record.key[:_SHOWN_BYTES].decode(errors="replace")
    if record.value is None:
        shown.note = "the record has no value"
        return shown
    value = record.value[:_SHOWN_BYTES]
    if len(record.value) > _SHOWN_BYTES:
        shown.note = f"the first {_SHOWN_BYTES:,} of {len(record.value):,} bytes"
    try:
        # A cut may fall into the middle of a character.
        shown.value = value.decode(errors="strict" if value == record.value else "ignore")
    except UnicodeDecodeError:
        shown.value, shown.encoding = base64.b64encode(value).decode(), "base64"
    return shown
