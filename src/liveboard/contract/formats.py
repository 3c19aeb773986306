"""The formats of topics' values: one entry for each, with what every layer has to know of it.

| layer         | what it takes from here                        | what it has for each format itself |
|---------------|------------------------------------------------|------------------------------------|
| configuration | the names, and whether there must be schemas   |                                    |
| pipeline      | all of it                                      | how values are read                |
| server        | whether a table is one by key                  | how a preview looks at a value     |
| inspection    |                                                | how a value is recognised          |

What a layer has for each format itself is a dictionary; `tests/unit/test_formats.py` fails while one of them lacks a
format.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

FormatName = Literal["json", "debezium", "avro"]


@dataclass(frozen=True, kw_only=True)
class ValueFormat:
    """All that is known of one format."""

    name: FormatName
    """As the configuration writes it."""
    is_text: bool
    """Whether values are text; the rejects show others in base64."""
    needs_schemas: bool
    """Whether values can be read only by schemas, from a file or from the registry."""
    is_by_key: bool
    """Whether a value says what becomes of a row, so that the table is one by key whatever its mode."""
    has_envelope: bool
    """Whether values and Kafka keys may have their schema around them, as Kafka Connect writes it."""


_ALL = (
    ValueFormat(name="json", is_text=True, needs_schemas=False, is_by_key=False, has_envelope=False),
    ValueFormat(name="debezium", is_text=True, needs_schemas=False, is_by_key=True, has_envelope=True),
    ValueFormat(name="avro", is_text=False, needs_schemas=True, is_by_key=False, has_envelope=False),
)

FORMATS: dict[FormatName, ValueFormat] = {format.name: format for format in _ALL}
