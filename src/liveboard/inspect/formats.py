"""What the values of a topic are: found out record by record, decided by the majority."""

from __future__ import annotations

import enum
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

Row = Mapping[str, Any]

_AVRO_MAGIC = b"\0"
_AVRO_HEADER_BYTES = 5
_OPERATIONS = ("c", "r", "u", "d")
_ENVELOPE = {"before", "after", "op"}


@dataclass(frozen=True)
class SampledRecord:
    """What is looked at of a record."""

    value: bytes | None
    key: bytes | None = None
    headers: tuple[str, ...] = ()
    """Their names."""


class FoundFormat(enum.StrEnum):
    """What a value can be."""

    JSON = "json"
    DEBEZIUM = "debezium"
    AVRO = "avro"
    TEXT = "text"
    BYTES = "bytes"


def read(value: bytes) -> tuple[FoundFormat, Row | None]:
    """What this value is, and its row: the object, or what Debezium says that the row is now."""
    document = document_of(value)
    if document is not None:
        change = envelope(document)
        return (FoundFormat.JSON, document) if change is None else (FoundFormat.DEBEZIUM, change["after"])
    if value[:1] == _AVRO_MAGIC and len(value) > _AVRO_HEADER_BYTES:
        return FoundFormat.AVRO, None
    try:
        text = value.decode()
    except ValueError:
        return FoundFormat.BYTES, None
    return FoundFormat.BYTES if any(c < " " and not c.isspace() for c in text) else FoundFormat.TEXT, None


def document_of(value: bytes) -> dict[str, Any] | None:
    """The JSON object that the value is; None where it is something else, or has a field twice."""
    try:
        # A fraction keeps its digits, and stays apart from a whole number.
        found = json.loads(value.decode(), parse_float=Decimal, parse_constant=_refuse, object_pairs_hook=_once)
    except (ValueError, ArithmeticError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def envelope(document: Row) -> Row | None:
    """The Debezium envelope that the document is, or has beside its schema; None where there is none."""
    payload = document.get("payload")
    found = payload if isinstance(payload, dict) and document.keys() == {"schema", "payload"} else document
    if not found.keys() >= _ENVELOPE or found["op"] not in _OPERATIONS:
        return None
    sides = (found["before"], found["after"])
    return found if any(sides) and all(side is None or isinstance(side, dict) for side in sides) else None


def schema_ids(values: Iterable[bytes]) -> list[int]:
    """The ids of the registry's schemas in the headers of Avro values, in order."""
    return sorted({int.from_bytes(value[1:_AVRO_HEADER_BYTES], "big") for value in values})


def key_fields(key: bytes | None) -> Row | str | None:
    """What a Kafka key says: its fields where it is a JSON object, as Kafka Connect writes them, or else its text."""
    if key is None:
        return None
    document = document_of(key)
    if document is not None:
        payload = document.get("payload")
        return payload if isinstance(payload, dict) and document.keys() == {"schema", "payload"} else document
    try:
        return key.decode()
    except ValueError:
        return None


def _refuse(word: str) -> Any:
    raise ValueError(f"{word} is not JSON")


def _once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a field is there twice")
    return found
