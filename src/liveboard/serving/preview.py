"""What a swap would bring: whether the last records of a topic look like those of a source."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from fractions import Fraction
from functools import partial
from typing import Any

import msgspec
import orjson

from liveboard.contract.formats import FormatName
from liveboard.contract.frames import Code, FrameError
from liveboard.contract.names import Names, is_topic_name
from liveboard.contract.paths import Path
from liveboard.contract.schema import Column
from liveboard.contract.types import ColumnType
from liveboard.serving import records
from liveboard.serving.auth import Grant
from liveboard.serving.catalogue import Catalogue
from liveboard.serving.origins import Origins
from liveboard.serving.records import Lookups

_SAMPLED = 200
_REASONS = 3
# As pipeline/fields.py takes them.
_NUMBER = re.compile(r"-?\d{1,40}(\.\d{1,40})?([eE][+-]?\d{1,3})?", re.ASCII)
_BASE64 = re.compile(r"[A-Za-z0-9+/]*={0,2}")

_Fits = Callable[[Any, ColumnType], bool]


class Preview(msgspec.Struct, frozen=True):
    """What was found in some of a topic's records."""

    source: str
    topic: str
    records: int
    """In the whole topic, by its offsets."""
    sampled: int
    fitting: int
    """How many of the sampled ones would become rows."""
    reasons: tuple[str, ...]
    """Why the others would be rejected, the most frequent reason first."""
    columns: tuple[str, ...]
    empty: tuple[str, ...]
    """Columns that have no value in any of the fitting ones."""


class Previews:
    """Samples topics when somebody wants to know; belongs to the event loop, and reads Kafka beside it."""

    def __init__(self, catalogue: Catalogue, lookups: Lookups, client_config: Mapping[str, str], names: Names) -> None:
        self._catalogue = catalogue
        self._lookups = lookups
        self._client_config = client_config
        self._names = names

    async def look(self, grant: Grant, source: str, topic: str) -> Preview:
        """Samples the topic's last records; a LiveboardError if it cannot be read."""
        status = self._catalogue.status
        origins = Origins(status.generations.get(status.live or "") if status else None)
        if source not in origins.tables:
            known = ", ".join(origins.tables) or "none is known yet"
            raise FrameError(Code.BAD_FRAME, f'source: expected one of the board ({known}), found "{source[:100]}"')
        if not is_topic_name(topic) or self._names.owns(topic):
            raise FrameError(Code.BAD_FRAME, f'topic: expected one that a source may read, found "{topic[:100]}"')
        count, messages = await self._lookups.run(
            grant.name, partial(records.last, self._client_config, topic, _SAMPLED)
        )
        values = [value for message in messages if (value := message.value()) is not None]
        return judged(source, topic, count, values, origins.columns(source), origins.format(source))


def judged(
    source: str,
    topic: str,
    count: int,
    values: Sequence[bytes],
    columns: Sequence[Column],
    format: FormatName = "json",
) -> Preview:
    """What there is to say of these records, by the pipeline's rules as far as one record shows them.

    A format that only the pipeline can read is left to it: all records are taken to fit.
    """
    row = _ROWS[format]
    if row is None:
        names = tuple(column.name for column in columns)
        sampled = len(values)
        return Preview(source, topic, count, sampled, sampled, reasons=(), columns=names, empty=())
    reasons: Counter[str] = Counter()
    filled: set[str] = set()
    fitting = 0
    for value in values:
        document = _document(value, row)
        reason = _unfit(document, columns)
        if reason:
            reasons[reason] += 1
            continue
        fitting += 1
        filled |= {column.name for column in columns if column.origin or _at(document, column.steps) is not None}
    names = tuple(column.name for column in columns)
    return Preview(
        source=source,
        topic=topic,
        records=count,
        sampled=len(values),
        fitting=fitting,
        reasons=tuple(reason for reason, _ in reasons.most_common(_REASONS)),
        columns=names,
        empty=tuple(name for name in names if name not in filled) if fitting else (),
    )


def _document(value: bytes, row: Callable[[Any], Any]) -> Any:
    """The object in which columns are looked for."""
    try:
        return row(orjson.loads(value))
    except orjson.JSONDecodeError:
        return None


def _changed_row(document: Any) -> Any:
    """The row that a change is about, as Debezium writes it."""
    if not isinstance(document, dict):
        return document
    change = document.get("payload", document)
    return (change.get("after") or change.get("before")) if isinstance(change, dict) else None


def _at(document: Any, path: Path) -> Any:
    """What is there, None where nothing is."""
    for step in path:
        if isinstance(step, int):
            document = document[step] if isinstance(document, list) and step < len(document) else None
        else:
            document = document.get(step) if isinstance(document, dict) else None
    return document


def _unfit(document: Any, columns: Sequence[Column]) -> str:
    if not isinstance(document, dict):
        return "expected a JSON object, found something else"
    for column in columns:
        if column.origin or column.unit:
            continue
        found = _at(document, column.steps)
        if found is not None and not _FITS[column.kind.name](found, column.kind):
            return f"{column.place}: expected {column.type}, found {_KINDS.get(type(found), 'something else')}"
    return ""


def _whole(bits: int) -> _Fits:
    return lambda found, _: isinstance(found, int) and not isinstance(found, bool) and -(2**bits) <= found < 2**bits


def _number(found: Any, _: ColumnType) -> bool:
    return isinstance(found, int | float) and not isinstance(found, bool) and math.isfinite(found)


def _decimal(found: Any, kind: ColumnType) -> bool:
    if not isinstance(found, int | float | str) or not _NUMBER.fullmatch(str(found)):
        return False
    precision, scale = kind.parameters
    unscaled = Fraction(str(found)) * 10**scale
    return bool(unscaled.denominator == 1 and abs(unscaled) < 10**precision)


def _moment(read: Callable[[str], object]) -> _Fits:
    def fits(found: Any, _: ColumnType) -> bool:
        try:
            return isinstance(found, str) and bool(read(found))
        except ValueError:
            return False

    return fits


def _base64(found: Any, _: ColumnType) -> bool:
    return isinstance(found, str) and len(found) % 4 == 0 and _BASE64.fullmatch(found) is not None


_KINDS = {str: "string", bool: "boolean", int: "number", float: "number", dict: "object", list: "array"}
# What of a JSON document is the row; None where the server cannot read values, since it has no schemas.
_ROWS: dict[FormatName, Callable[[Any], Any] | None] = {
    "json": lambda document: document,
    "debezium": _changed_row,
    "avro": None,
}
# Whether what JSON has is of the type.
_FITS: dict[str, _Fits] = {
    "string": lambda found, _: isinstance(found, str),
    "boolean": lambda found, _: isinstance(found, bool),
    "int": _whole(31),
    "bigint": _whole(63),
    "double": _number,
    "decimal": _decimal,
    "date": _moment(date.fromisoformat),
    "timestamp": _moment(datetime.fromisoformat),
    "json": lambda found, _: True,
    "binary": _base64,
}
