"""The columns of tables: how a board writes them, and what follows for source, joined and reject tables."""

import difflib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from liveboard.errors import LiveboardError

_WIRE_TYPES = {
    "string": "string",
    "boolean": "bool",
    "int": "int32",
    "bigint": "int64",
    "double": "float64",
    "date": "date",
    "timestamp": "timestamp",
}
TYPES = tuple(_WIRE_TYPES)
TYPE_LIST = ", ".join(TYPES[:-1]) + " or " + TYPES[-1]

# Common names for these types that no spelling distance would find.
_OTHER_NAMES = {wire: name for name, wire in _WIRE_TYPES.items()} | {
    "long": "bigint",
    "float": "double",
    "real": "double",
    "text": "string",
    "varchar": "string",
    "datetime": "timestamp",
}

_TOKEN = re.compile(r"`(?:[^`]|``)+`|,|[^\s,`]+|`")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class SchemaError(LiveboardError):
    """A schema text that cannot be read; the message says what was expected and what was found."""


@dataclass(frozen=True)
class Column:
    """One column of a table; the type is one of TYPES."""

    name: str
    type: str


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
        if column.name.lower() == TS.name:
            raise SchemaError(f'expected a name other than "{column.name}", which is the Kafka timestamp\'s')
        if any(column.name.lower() == other.name.lower() for other in columns):
            raise SchemaError(f'expected different column names (case ignored), found "{column.name}" twice')
        columns.append(column)
    return tuple(columns)


def wire_type(type_: str) -> str:
    """The name that viewers see for one of TYPES."""
    return _WIRE_TYPES[type_]


def source_columns(schema: Sequence[Column]) -> tuple[Column, ...]:
    """The columns of a source's table: its schema and the Kafka timestamp."""
    return (*schema, TS)


def join_columns(left: Sequence[Column], right: Sequence[Column], on: str, right_name: str) -> tuple[Column, ...]:
    """The columns of a joined table: the key, the other left ones, the other right ones, ts.

    A right column whose name is taken (case ignored) gets the right source's name as prefix until it is free.
    """
    columns = [column for column in left if column.name == on]
    columns += [column for column in left if column.name != on]
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
    type_ = words[1].lower()
    if type_ not in _WIRE_TYPES:
        raise SchemaError(f'expected a type for "{name}" ({TYPE_LIST}), found "{words[1]}"{_hint(type_)}')
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
    known = _OTHER_NAMES.get(type_) or next(iter(difflib.get_close_matches(type_, TYPES, 1)), None)
    return f", did you mean {known}?" if known else ""
