"""What every table must contain, worked out in plain Python from the content of the topics alone.

Written from behaviour B1 to B11, not from the pipeline: slow, obvious, and without Spark.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

from liveboard.config import Board, Source

Row = tuple[Any, ...]
Table = dict[str, Row]


@dataclass(frozen=True)
class Record:
    """A record as it lies in Kafka."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    value: bytes | None

    @property
    def position(self) -> str:
        return f"{self.partition}-{self.offset}"

    @property
    def ts(self) -> str:
        seconds, milliseconds = divmod(self.timestamp_ms, 1000)
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S") + f".{milliseconds:03}000Z"

    @property
    def order(self) -> tuple[int, int, int]:
        return (self.timestamp_ms, self.partition, self.offset)


class Refused(Exception):
    """The record does not fit its source: `field: expected what`."""


def tables(board: Board, records: Iterable[Record]) -> dict[str, Table]:
    """All tables of the board: table name to row key to row."""
    rows: dict[str, list[tuple[Record, dict[str, Any]]]] = {name: [] for name in board.sources}
    result: dict[str, Table] = {source.table: {} for source in board.sources.values()}
    rejects: Table = {}
    by_topic = {source.topic: source for source in board.sources.values()}
    for record in records:
        source = by_topic[record.topic]
        if record.value is None:
            continue
        try:
            row = read(source, record.value)
        except Refused as refused:
            shown = record.value.decode("utf-8", "replace")[:65_536]
            key = f"{record.topic}-{record.position}"
            rejects[key] = (record.topic, record.partition, record.offset, str(refused), shown, record.ts)
            continue
        rows[source.name].append((record, row))
        result[source.table][record.position] = (*row.values(), record.ts)
    for name, join in board.joins.items():
        result[name] = _JOINS[join.how](board, join, rows[join.left], rows[join.right])
    return {**result, "rejects_ui": rejects}


def read(source: Source, value: bytes) -> dict[str, Any]:
    """The typed row, or Refused."""
    if len(value) > source.max_value_bytes:
        raise Refused(f"value: expected at most {source.max_value_bytes} bytes")
    try:
        text = value.decode("utf-8")
    except UnicodeDecodeError:
        raise Refused("value: expected UTF-8 text") from None
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        raise Refused("value: expected a JSON object") from None
    if not isinstance(document, dict):
        raise Refused("value: expected a JSON object")
    row = {}
    for column in source.columns:
        found = document.get(column.name)
        try:
            row[column.name] = None if found is None else _typed(found, column.type)
        except ValueError:
            if source.on_error == "reject":
                raise Refused(f"{column.name}: expected {column.type}") from None
            row[column.name] = None
    return row


def _typed(found: Any, type_: str) -> Any:
    integer = isinstance(found, int) and not isinstance(found, bool)
    match type_:
        case "string":
            if isinstance(found, str):
                return found.encode("utf-8", "replace").decode()
        case "boolean":
            if isinstance(found, bool):
                return found
        case "int" | "bigint":
            bits = 31 if type_ == "int" else 63
            if integer and -(2**bits) <= found < 2**bits:
                return found
        case "double":
            if integer or isinstance(found, float):
                try:
                    number = float(found)
                except OverflowError:
                    number = math.inf
                if math.isfinite(number):
                    return number
        case "date":
            if isinstance(found, str) and re.fullmatch(r"\d{4}-\d\d-\d\d", found, re.ASCII):
                return date.fromisoformat(found).isoformat()
        case "timestamp":
            pattern = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d{1,6})?(Z|[+-]\d\d:\d\d)?"
            if isinstance(found, str) and re.fullmatch(pattern, found, re.ASCII):
                fraction = re.search(r"\.\d+", found)
                padded = found.replace(fraction[0], fraction[0].ljust(7, "0")) if fraction else found
                moment = datetime.fromisoformat(padded)
                moment = moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
                return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    raise ValueError(found)


def _left(board: Board, join: Any, lefts: list[Any], rights: list[Any]) -> Table:
    result = {}
    by_key = _by_key(rights, join.on)
    for record, row in lefts:
        matches = by_key.get(row[join.on], [])
        result[record.position] = _joined(board, join, record, row, max(matches, key=_order, default=None))
    return result


def _inner(board: Board, join: Any, lefts: list[Any], rights: list[Any]) -> Table:
    by_key = _by_key(rights, join.on)
    return {
        f"{record.position}:{other[0].position}": _joined(board, join, record, row, other)
        for record, row in lefts
        for other in by_key.get(row[join.on], [])
    }


def _asof(board: Board, join: Any, lefts: list[Any], rights: list[Any]) -> Table:
    result = {}
    by_key = _by_key(rights, join.on)
    for record, row in lefts:
        matches = [m for m in by_key.get(row[join.on], []) if m[0].timestamp_ms <= record.timestamp_ms]
        result[record.position] = _joined(board, join, record, row, max(matches, key=_order, default=None))
    return result


_JOINS = {"left": _left, "inner": _inner, "asof": _asof}


def _by_key(rows: list[Any], on: str) -> dict[Any, list[Any]]:
    by_key: dict[Any, list[Any]] = {}
    for record, row in rows:
        if row[on] is not None:
            by_key.setdefault(row[on], []).append((record, row))
    return by_key


def _order(match: tuple[Record, dict[str, Any]]) -> tuple[int, int, int]:
    return match[0].order


def _joined(board: Board, join: Any, record: Record, row: dict[str, Any], other: Any) -> Row:
    left = [value for name, value in row.items() if name != join.on]
    names = [column.name for column in board.sources[join.right].columns if column.name != join.on]
    right = [other[1][name] if other else None for name in names]
    return (row[join.on], *left, *right, record.ts)
