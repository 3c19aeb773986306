"""The columns of tables: how a board writes them, and what follows for source, joined and reject tables."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from liveboard.contract.errors import LiveboardError, either
from liveboard.contract.paths import Path, path_text
from liveboard.contract.types import MOST_DIGITS, TYPES, ColumnType, column_type, meant_type, written_type

TYPE_LIST = either("decimal(p,s)" if name == "decimal" else name for name in TYPES)

_TOKEN = re.compile(r"`(?:[^`]|``)+`|,|[^\s,`()]+(?:\s*\([^()`]*\))?|[`()]")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class SchemaError(LiveboardError):
    """A schema text that cannot be read; the message says what was expected and what was found."""


@dataclass(frozen=True)
class Column:
    """One column of a table, and of a source's column where its value comes from."""

    name: str
    type: str
    """As the schema writes it."""
    path: Path | None = None
    """Where the value is in a record's document; without a path it is in the field that has the column's name."""
    unit: str = ""
    """What numbers for a timestamp count since 1970: s, ms or us; empty where only text is one."""
    origin: str = ""
    """What of the Kafka record it is instead: key, partition, offset, timestamp, or a header such as headers.trace."""

    @property
    def kind(self) -> ColumnType:
        """All that is known of the column's type."""
        return column_type(self.type)

    @property
    def steps(self) -> Path:
        """The way to its value in a record's document."""
        return (self.name,) if self.path is None else self.path

    @property
    def place(self) -> str:
        """Where its value comes from, as reasons name it."""
        return self.origin or path_text(self.steps)

    @property
    def of_table(self) -> Column:
        """The column as tables have it: nobody who reads a table need know where it comes from."""
        return Column(self.name, self.type)


TS = Column("ts", "timestamp")

REJECT_COLUMNS = (
    Column("topic", "string"),
    Column("partition", "int"),
    Column("offset", "bigint"),
    Column("reason", "string"),
    Column("value", "string"),
    TS,
)


def parse_schema(text: str) -> tuple[Column, ...]:
    """The columns of a text such as "userId string, age bigint".

    Names other than plain words stand in backquotes, a backquote inside is doubled; types in any case.
    """
    tokens = _TOKEN.findall(text)
    if not tokens:
        raise SchemaError('expected at least one column such as "userId string", found nothing')
    columns: list[Column] = []
    for words in _split_at_commas(tokens):
        column = _column(words, columns)
        check_name(column.name, columns)
        columns.append(column)
    return tuple(columns)


def check_name(name: str, others: Sequence[Column]) -> None:
    """A SchemaError if a source with these columns cannot have another one of this name."""
    if name.lower() == TS.name:
        raise SchemaError(f'expected a name other than "{name}", which is the Kafka timestamp\'s')
    if any(name.lower() == other.name.lower() for other in others):
        raise SchemaError(f'expected different column names (case ignored), found "{name}" twice')


def read_type(name: str, written: str) -> str:
    """The type that is written for the column of this name; a SchemaError if there is no such type."""
    try:
        return written_type(written)
    except ValueError:
        raise SchemaError(
            f'expected a type for "{name}" ({TYPE_LIST}), found "{written}"{_hint(written.lower())}'
        ) from None


def source_columns(schema: Sequence[Column]) -> tuple[Column, ...]:
    """The columns of a source's table: its own and the Kafka timestamp."""
    return (*[column.of_table for column in schema], TS)


def join_columns(left: Sequence[Column], right: Sequence[Column], on: str, right_name: str) -> tuple[Column, ...]:
    """The columns of a joined table: the key, the other left ones, the other right ones, ts.

    A right column whose name is taken (case ignored) gets the right source's name as prefix until it is free.
    """
    columns = [column.of_table for column in left if column.name == on]
    columns += [column.of_table for column in left if column.name != on]
    taken = {TS.name} | {column.name.lower() for column in columns}
    for column in right:
        if column.name == on:
            continue
        name = column.name
        while name.lower() in taken:
            name = f"{right_name}_{name}"
        taken.add(name.lower())
        columns.append(Column(name, column.type))
    return (*columns, TS)


def _split_at_commas(tokens: list[str]) -> Iterator[list[str]]:
    words: list[str] = []
    for token in tokens:
        if token == ",":
            yield words
            words = []
        else:
            words.append(token)
    yield words


def _column(words: list[str], before: list[Column]) -> Column:
    where = f'after "{before[-1].name} {before[-1].type}"' if before else "at the start"
    if not words:
        raise SchemaError(f"expected a column {where}, found nothing")
    name = _name(words[0])
    if len(words) == 1:
        raise SchemaError(f'expected a type for "{name}" ({TYPE_LIST}), found nothing')
    type_ = read_type(name, words[1])
    if len(words) > 2:
        raise SchemaError(f'expected a comma or the end after "{name} {type_}", found "{words[2]}"')
    return Column(name, type_)


def _name(word: str) -> str:
    if word == "`":
        raise SchemaError("expected a name between two backquotes, found only one backquote or nothing inside")
    if word.startswith("`"):
        return word[1:-1].replace("``", "`")
    if not _NAME.fullmatch(word):
        raise SchemaError(
            f'expected a column name (letters, digits and "_", or anything in backquotes), found "{word}"'
        )
    return word


def _hint(type_: str) -> str:
    word = type_.partition("(")[0].strip()
    known = meant_type(word) or next(iter(difflib.get_close_matches(word, TYPES, 1)), None)
    if known == "decimal":
        return f", did you mean decimal(10,2)? The first number is that of all digits, up to {MOST_DIGITS}"
    return f", did you mean {known}?" if known else ""
