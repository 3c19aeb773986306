"""What a server and its SQL process say to each other: a length in four bytes, then a message."""

from __future__ import annotations

from typing import IO

import msgspec

from liveboard.contract.frames import Code

ColumnPair = tuple[str, str]
"""A column's name and its type as schemas write it."""


class StatementLimits(msgspec.Struct, frozen=True):
    """What a statement may have."""

    seconds: float
    memory_mb: int
    rows: int


class Prepare(msgspec.Struct, frozen=True, tag=True):
    """Asks whether a statement may be asked over these tables; `key` names the columns that tell its rows apart."""

    sql: str
    tables: dict[str, list[ColumnPair]]
    lasting: bool
    key: list[str]


class Load(msgspec.Struct, frozen=True, tag=True):
    """A table begins, empty."""

    table: int
    columns: list[ColumnPair]
    needed: list[str]


class Put(msgspec.Struct, frozen=True, tag=True):
    """Rows of a table by position."""

    table: int
    rows: list[tuple[int, bytes | None]]


class Forget(msgspec.Struct, frozen=True, tag=True):
    """A table is not needed any more, or the last answer of a live statement."""

    table: int = 0
    live: int = 0


class Run(msgspec.Struct, frozen=True, tag=True):
    """Asks for an answer; of a live statement only what has changed since the last one, if that is `known`."""

    sql: str
    tables: dict[str, int]
    key: list[int] | None
    live: int = 0
    known: bool = False


class Begun(msgspec.Struct, frozen=True, tag=True):
    """All that was sent has been taken in, and the time of the statement begins."""


class Prepared(msgspec.Struct, frozen=True, tag=True):
    """The statement may be asked."""

    columns: list[ColumnPair]
    needed: dict[str, list[str]]
    key: list[int] | None


class SqlAnswer(msgspec.Struct, frozen=True, tag=True):
    """The rows that are new at their place, of so many; the processor's time that it took."""

    columns: list[ColumnPair]
    total: int
    rows: list[tuple[int, bytes, bytes]]
    seconds: float


class Refused(msgspec.Struct, frozen=True, tag=True):
    """Why there is no answer."""

    code: Code
    message: str


Asked = Prepare | Load | Put | Forget | Run
Told = Begun | Prepared | SqlAnswer | Refused

_encoder = msgspec.msgpack.Encoder()
asked_decoder: msgspec.msgpack.Decoder[Asked] = msgspec.msgpack.Decoder(Asked)
told_decoder: msgspec.msgpack.Decoder[Told] = msgspec.msgpack.Decoder(Told)


def write(file: IO[bytes], message: Asked | Told) -> None:
    """Sends a message."""
    body = _encoder.encode(message)
    file.write(len(body).to_bytes(4) + body)


def read(file: IO[bytes]) -> bytes | None:
    """The next message; None when the other side is gone."""
    head = file.read(4)
    if len(head) < 4:
        return None
    size = int.from_bytes(head)
    body = file.read(size)
    return body if len(body) == size else None
