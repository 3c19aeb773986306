"""The names of boards, tables, generations, topics and file formats."""

import re
from collections.abc import Collection
from dataclasses import dataclass

TABLE_NAME = re.compile(r"^[A-Za-z_][A-Za-z0-9_]*$")

REJECTS_TABLE = "rejects_ui"
CONTROL_TABLE = "control_raw"
STATUS_TABLE = "orchestrator_status"
ALERTS_TABLE = "alerts_ui"
RESERVED_TABLES = frozenset({REJECTS_TABLE, CONTROL_TABLE, STATUS_TABLE, ALERTS_TABLE})

DEFAULT_BOARD_NAME = "liveboard"
EXPORT_FORMATS = ("csv", "parquet", "arrow", "json")

_TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}")
# Without a dot, so that no board's name is the beginning of another board's topics.
_BOARD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,29}")
_GENERATION = re.compile(r"g([1-9][0-9]*)")
REPAIRS = "repairs-asked"
"""Stands where a table's name would, in the name of the topic of repairs; it is no table's name."""
_OF_GENERATION = re.compile(rf"([^.]+)\.(g[1-9][0-9]*)\.([A-Za-z_][A-Za-z0-9_]*|{REPAIRS})")
_STATUS, _VERDICTS, _OWNER, _CONTROL = "-status", f"-{CONTROL_TABLE}", "-owner", "-control"
_SAVED = "-views"
_ALERTS, _ALERTS_TABLE, _DELIVERED = "-alerts", f"-{ALERTS_TABLE}", "-alerts-delivered"


@dataclass(frozen=True)
class Names:
    """The topics of one board: those of its generations are NAME.g1.TABLE, the others NAME-status and so on."""

    board: str = DEFAULT_BOARD_NAME
    control_topic: str = ""
    """Where control messages come; NAME-control where it is not given."""

    @property
    def status(self) -> str:
        """The topic of the status document."""
        return f"{self.board}{_STATUS}"

    @property
    def verdicts(self) -> str:
        """The changelog of the table control_raw: what became of the control messages."""
        return f"{self.board}{_VERDICTS}"

    @property
    def owner(self) -> str:
        """The topic that decides who keeps the board."""
        return f"{self.board}{_OWNER}"

    @property
    def control(self) -> str:
        """The topic of the control messages."""
        return self.control_topic or f"{self.board}{_CONTROL}"

    @property
    def saved(self) -> str:
        """The topic of the views and boards that people keep."""
        return f"{self.board}{_SAVED}"

    @property
    def alerts(self) -> str:
        """The topic that has every alert that is raised or cleared."""
        return f"{self.board}{_ALERTS}"

    @property
    def raised(self) -> str:
        """The changelog of the table alerts_ui: what is raised now."""
        return f"{self.board}{_ALERTS_TABLE}"

    @property
    def delivered(self) -> str:
        """The topic that remembers how much of the alerts each receiver has got."""
        return f"{self.board}{_DELIVERED}"

    @property
    def own_changelogs(self) -> dict[str, str]:
        """The changelogs of the tables that belong to no generation, by table."""
        return {CONTROL_TABLE: self.verdicts, ALERTS_TABLE: self.raised}

    def changelog(self, generation: str, table: str) -> str:
        """The topic that holds the rows of a table in a generation."""
        return f"{self.board}.{generation}.{table}"

    def repairs(self, generation: str) -> str:
        """The topic in which a generation's stream asks for repairs."""
        return self.changelog(generation, REPAIRS)

    def generation_of(self, topic: str) -> str | None:
        """The generation that the topic belongs to; None for a topic of no generation of this board."""
        found = _OF_GENERATION.fullmatch(topic)
        return found[2] if found and found[1] == self.board else None

    def owns(self, topic: str) -> bool:
        """Whether the board itself writes the topic."""
        own = (self.status, self.verdicts, self.owner, self.saved, self.alerts, self.raised, self.delivered)
        return topic in own or self.generation_of(topic) is not None


def without_boards(topics: Collection[str], own: Names) -> list[str]:
    """Those of a cluster's topics that belong neither to the own board nor to another; nor are they Kafka's own."""
    boards = {topic.removesuffix(_STATUS) for topic in topics if topic.endswith(_STATUS)}
    # A status topic alone may be anybody's.
    there = [own, *(names for board in boards if (names := Names(board)).verdicts in topics)]
    return [
        topic
        for topic in topics
        if not topic.startswith("__") and not any(names.owns(topic) or topic == names.control for names in there)
    ]


def is_topic_name(name: str) -> bool:
    """Whether Kafka allows a topic of this name."""
    return _TOPIC.fullmatch(name) is not None and name not in (".", "..")


def is_board_name(name: str) -> bool:
    """Whether a board may have this name."""
    return _BOARD.fullmatch(name) is not None


def is_table_name(name: str) -> bool:
    """Whether clients may ask for a table of this name."""
    # fullmatch, because `$` alone also accepts a trailing newline
    return TABLE_NAME.fullmatch(name) is not None


def is_reserved_table(name: str) -> bool:
    """Whether the name, in any case, belongs to a table that liveboard fills itself."""
    return name.lower() in RESERVED_TABLES


def is_generation(name: str) -> bool:
    """Whether this is the id of a generation."""
    return _GENERATION.fullmatch(name) is not None


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
