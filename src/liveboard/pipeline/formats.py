"""What a format of values has to say, so that `parse` can make typed rows and reasons of records."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import NamedTuple

from pyspark.sql import Column as Expr
from pyspark.sql import functions as F

from liveboard.contract.board import Source
from liveboard.contract.schema import Column
from liveboard.pipeline.avro_schema import AvroSchemas

_SHOWN_CHARACTERS = 100


class Rule(NamedTuple):
    """A reason to refuse a record."""

    broken: Expr
    why: Callable[[], Expr]
    """What is then said; put together only where it is asked for."""


class Format(ABC):
    """How the values of one source are read, in two looks.

    The first look reads each value once, and cheaply. The second is taken only of the records that the first leaves
    in doubt. `parse` keeps both in columns, `first` and `second`, which the other methods look at.
    `schemas` are empty where the format needs none.
    """

    def __init__(self, source: Source, first: Expr, second: Expr, schemas: AvroSchemas) -> None:
        self.source = source
        self.schemas = schemas
        self.columns = [column for column in source.columns if not column.origin]
        self.first = first
        self.second = second

    @abstractmethod
    def can_be_read(self) -> Expr:
        """Whether there is a first look at the value."""

    @abstractmethod
    def look(self) -> Expr:
        """The first look; null where the value is unreadable."""

    @abstractmethod
    def look_again(self) -> Expr | None:
        """The second look; null where nothing is in doubt. None where the format needs none."""

    @abstractmethod
    def has_row(self) -> Expr:
        """Whether the value is one that can have columns."""

    @abstractmethod
    def unreadable(self) -> list[Rule]:
        """Why a value has no row, whatever the source says about errors; in the order of asking."""

    @abstractmethod
    def wrong(self, columns: Sequence[Column]) -> list[Rule]:
        """What is wrong with these columns, in the order of asking; each reason names the place."""

    @abstractmethod
    def value(self, column: Column) -> Expr:
        """The column's value of the column's type; null where it is wrong."""

    def removes(self) -> Expr | None:
        """Whether the value says that the row of its key goes; None where values never do."""
        return None

    def removed(self, column: Column) -> Expr | None:
        """A column of the key of the row that goes, or null; None where values never tell it."""
        return None


def text_of(value: Expr) -> Expr:
    """Bytes as text."""
    return value.cast("string")


def is_text(value: Expr) -> Expr:
    """Whether bytes are text in UTF-8."""
    return F.call_function("is_valid_utf8", text_of(value))


def shown(text: Expr) -> Expr:
    """A text as reasons quote it."""
    shortened = F.concat(F.substring(text, 1, _SHOWN_CHARACTERS), F.lit("…"))
    return F.when(F.length(text) > _SHOWN_CHARACTERS, shortened).otherwise(text)
