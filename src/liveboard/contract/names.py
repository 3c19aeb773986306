"""The names of tables, generations, topics and file formats."""

import re

TABLE_NAME = re.compile(r"^[A-Za-z_][A-Za-z0-9_]*$")

REJECTS_TABLE = "rejects_ui"
CONTROL_TABLE = "control_raw"
STATUS_TABLE = "orchestrator_status"
RESERVED_TABLES = frozenset({REJECTS_TABLE, CONTROL_TABLE, STATUS_TABLE})

TOPIC_PREFIX = "liveboard."
STATUS_TOPIC = "liveboard.status"
CONTROL_CHANGELOG = "liveboard.control_raw"

EXPORT_FORMATS = ("csv", "parquet", "arrow", "json")

_GENERATION = re.compile(r"g([1-9][0-9]*)")
_CHANGELOG_TOPIC = re.compile(r"liveboard\.(g[1-9][0-9]*)\.([A-Za-z_][A-Za-z0-9_]*)")


def is_table_name(name: str) -> bool:
    """Whether clients may ask for a table of this name."""
    # fullmatch, because `$` alone also accepts a trailing newline
    return TABLE_NAME.fullmatch(name) is not None


def is_reserved_table(name: str) -> bool:
    """Whether the name, in any case, belongs to a table that liveboard fills itself."""
    return name.lower() in RESERVED_TABLES


def changelog_topic(generation: str, table: str) -> str:
    """The topic that holds the rows of a table in a generation."""
    return f"{TOPIC_PREFIX}{generation}.{table}"


def parse_changelog_topic(topic: str) -> tuple[str, str] | None:
    """The generation and the table of a changelog topic; None for any other topic."""
    found = _CHANGELOG_TOPIC.fullmatch(topic)
    return (found[1], found[2]) if found else None


def generation_id(number: int) -> str:
    """The id of the n-th generation, counted from 1."""
    if number < 1:
        raise ValueError(f"expected a generation number from 1, found {number}")
    return f"g{number}"


def generation_number(generation: str) -> int:
    """The number in a generation's id."""
    found = _GENERATION.fullmatch(generation)
    if not found:
        raise ValueError(f'expected a generation id such as "g1", found "{generation}"')
    return int(found[1])
