"""The frames of protocol 1: JSON texts over a WebSocket, `op` from the client, `ev` from the server.

The first frame is `auth`, within AUTH_WITHIN_S; the answer is `ready`, or the error `unauthorized` and a close with
UNAUTHORIZED. Then any number of subscriptions, each under an id that the client chooses and uses once:

- `subscribe` and `window` are answered by a `snapshot`, or by an `error` with their id. After an error to `subscribe`
  there is no subscription; after an error to `window` it goes on as it was. `window` keeps what it does not name
  (offset, size, order, sort, filter, search); a null or an empty list takes sort, filter or search away.
- `subscribe` names a `table`, or has `sql` in its place: one SELECT over the tables that the key shows. Its answer is
  then a table that is kept up to date; its snapshot comes as soon as there is a first one.
- The order `newest` shows the table's own order from its end: the newest row is at offset 0. `arrival`, which is meant
  where none is named, begins with the oldest. What SQL makes has the order of its statement, whichever is named.
- `snapshot` and `delta` carry the version: 1 for the first frame of a subscription, then one more each time.
- A `delta` first moves all rows of the window back by `insert` places, which only the order `newest` needs: so a row
  that arrives is sent alone, without all those behind it. Then it puts rows at their index, first those that are
  there, then those that are new, in the order of their index; the places in front are among them. After that `drop`
  rows are cut off the window's end.
- `rebound` says that the name means another generation from here on; the snapshot follows directly.
- An `error` of its own accord (unknown_table, bad_filter, bad_sql, over_limit) ends the subscription: the table or a
  column is gone, or the statement cannot be answered any more.
- An error without id is about a frame that could not be read, or about the connection.

A filter is a list of conditions that must all hold, each [column, operator] or [column, operator, value]:

| operator                      | columns                | value                                         |
|-------------------------------|------------------------|-----------------------------------------------|
| `=` `!=` `<` `<=` `>` `>=`    | all (boolean: = != )   | of the column's type, not null                |
| `in`                          | all                    | a list of such values                         |
| `between`                     | all but boolean        | [low, high], both included                    |
| `contains` `starts with`      | string                 | a text; without case                          |
| `is null` `is not null`       | all                    | none                                          |

A null in a column fulfils `is null` and no other condition, so `!=` too leaves it out. bigint values are numbers or
strings of digits, dates and timestamps ISO-8601 texts. Without case means: every character counts as the first
character of its lower-case form, so `Ä` as `ä`.

`search` finds the rows where the text of any column contains the text, without case. Numbers are found by their digits,
with or without commas between thousands and zeros behind the point; timestamps as `2026-01-31 09:30:00.000000`, in UTC.

Sorting puts nulls last in both directions; rows that are equal in all sorted columns are in the order that is asked
for.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Literal, TypeVar

import msgspec

from liveboard.contract.changelog import Value
from liveboard.contract.errors import LiveboardError
from liveboard.contract.schema import Column
from liveboard.contract.types import WireType

PROTOCOL = 1
AUTH_WITHIN_S = 5.0
BEAT_EVERY_S = 10.0
MAX_SIZE = 10_000
DEFAULT_SIZE = 300
MAX_CLIENT_FRAME_BYTES = 1024 * 1024

# Close codes
UNAUTHORIZED = 4401
"""The key is wrong or came too late: trying again with the same key is useless."""
UNSUPPORTED = 4406
"""The server does not speak the client's protocol."""
RESTART = 1012
"""The server stops: come back in a moment, here or at another replica."""
OVERLOADED = 1013
"""The server has too much to do, or this viewer does not read: come back later."""


class Code(StrEnum):
    """What an error is about."""

    UNAUTHORIZED = "unauthorized"
    BAD_FRAME = "bad_frame"
    BAD_NAME = "bad_name"
    UNKNOWN_TABLE = "unknown_table"
    BAD_WINDOW = "bad_window"
    BAD_FILTER = "bad_filter"
    BAD_SQL = "bad_sql"
    OVER_LIMIT = "over_limit"
    """A statement needs more time, memory or rows than it may have."""
    TOO_MANY = "too_many"
    OVERLOADED = "overloaded"


class Role(StrEnum):
    """What a key is for."""

    VIEWER = "viewer"
    """Reads the tables that the key shows."""
    ADMIN = "admin"
    """Also swaps topics and joins."""


class FrameError(LiveboardError):
    """What is answered with an error frame; `id` is the subscription's, where it is known."""

    def __init__(self, code: Code, message: str, id: int | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.id = id


Order = Literal["arrival", "newest"]
SortKey = tuple[str, Literal["asc", "desc"]]
Sort = tuple[SortKey, ...]
Filter = tuple[tuple[Any, ...], ...]


class Auth(msgspec.Struct, frozen=True, tag_field="op", tag="auth", forbid_unknown_fields=True):
    """The first frame."""

    psk: str
    protocol: int = PROTOCOL

    def __repr__(self) -> str:
        return f"Auth(psk='***', protocol={self.protocol})"


class Subscribe(msgspec.Struct, frozen=True, kw_only=True, tag_field="op", tag="subscribe", forbid_unknown_fields=True):
    """Asks for a window of a table, or of the answer to a statement; with a generation, of that one for ever."""

    id: int
    table: str = ""
    sql: str | msgspec.UnsetType = msgspec.UNSET
    offset: int = 0
    size: int = DEFAULT_SIZE
    order: Order = "arrival"
    sort: Sort | None = None
    filter: Filter | None = None
    search: str | None = None
    generation: str | None = None

    def __post_init__(self) -> None:
        if not self.table and not self.sql:
            raise ValueError("Object missing required field `table`, or `sql` in its place")


class MoveWindow(msgspec.Struct, frozen=True, kw_only=True, tag_field="op", tag="window", forbid_unknown_fields=True):
    """Moves a subscription; what is not named stays as it is."""

    id: int
    offset: int | msgspec.UnsetType = msgspec.UNSET
    size: int | msgspec.UnsetType = msgspec.UNSET
    order: Order | msgspec.UnsetType = msgspec.UNSET
    sort: Sort | msgspec.UnsetType | None = msgspec.UNSET
    filter: Filter | msgspec.UnsetType | None = msgspec.UNSET
    search: str | msgspec.UnsetType | None = msgspec.UNSET


class Unsubscribe(msgspec.Struct, frozen=True, tag_field="op", tag="unsubscribe", forbid_unknown_fields=True):
    """Ends a subscription; harmless when there is none of that id."""

    id: int


ClientFrame = Auth | Subscribe | MoveWindow | Unsubscribe


class WireColumn(msgspec.Struct, frozen=True):
    """A column as viewers see it."""

    name: str
    type: WireType


class TableInfo(msgspec.Struct, frozen=True):
    """A table that can be subscribed to."""

    name: str
    columns: tuple[WireColumn, ...]
    rows: int
    kind: str = ""
    """What it is: source, join, rejects, control, status, view; empty where nothing tells."""


class Ready(msgspec.Struct, frozen=True, tag_field="ev", tag="ready"):
    """The key was right; the tables are those that it shows."""

    tables: tuple[TableInfo, ...]
    role: Role
    server: str


class Snapshot(msgspec.Struct, frozen=True, kw_only=True, tag_field="ev", tag="snapshot"):
    """The whole window; `generation` is null for the tables that belong to none."""

    id: int
    version: int
    generation: str | None
    total: int
    offset: int
    columns: tuple[WireColumn, ...]
    keys: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]


class Delta(msgspec.Struct, frozen=True, kw_only=True, tag_field="ev", tag="delta"):
    """What changed in the window: `insert` places come in front, then (index, key, row), then `drop` fall off."""

    id: int
    version: int
    total: int
    rows: tuple[tuple[int, str, tuple[Value, ...]], ...]
    drop: int = 0
    insert: int = 0


class Rebound(msgspec.Struct, frozen=True, tag_field="ev", tag="rebound"):
    """The name means another generation now."""

    id: int
    generation: str | None


class Error(msgspec.Struct, frozen=True, tag_field="ev", tag="error"):
    """What went wrong, in words."""

    id: int | None
    code: Code
    message: str


class Beat(msgspec.Struct, frozen=True, tag_field="ev", tag="beat"):
    """The server is there."""


ServerFrame = Ready | Snapshot | Delta | Rebound | Error | Beat

_F = TypeVar("_F")
_client: msgspec.json.Decoder[ClientFrame] = msgspec.json.Decoder(ClientFrame, strict=True)
_server: msgspec.json.Decoder[ServerFrame] = msgspec.json.Decoder(ServerFrame, strict=True)
_encoder = msgspec.json.Encoder()


class _Identified(msgspec.Struct):
    id: int | None = None


def decode_client(text: str | bytes) -> ClientFrame:
    """A frame from a client; otherwise a FrameError that says what was expected and what was found."""
    return _decode(text, _client, "auth, subscribe, window or unsubscribe")


def decode_server(text: str | bytes) -> ServerFrame:
    """A frame from the server; otherwise a FrameError that says what was expected and what was found."""
    return _decode(text, _server, "ready, snapshot, delta, rebound, error or beat")


def encode(frame: ClientFrame | ServerFrame) -> str:
    """The text of a frame."""
    return _encoder.encode(frame).decode()


def wire_columns(columns: Sequence[Column]) -> tuple[WireColumn, ...]:
    """A table's columns as viewers see them."""
    return tuple(WireColumn(column.name, column.kind.wire) for column in columns)


def snapshot_body(
    generation: str | None,
    total: int,
    offset: int,
    columns: Sequence[WireColumn],
    keys: Sequence[bytes],
    rows: Sequence[bytes],
) -> str:
    """A snapshot's text without id and version, for `framed`; rows are changelog values, taken as they are."""
    head = _encoder.encode({"generation": generation, "total": total, "offset": offset, "columns": columns})
    names = _encoder.encode([key.decode() for key in keys])
    return b"".join((head[1:-1], b',"keys":', names, b',"rows":[', b",".join(rows), b"]")).decode()


def delta_body(total: int, rows: Sequence[tuple[int, bytes, bytes]], drop: int, insert: int) -> str:
    """A delta's text without id and version, for `framed`; rows are changelog values, taken as they are."""
    parts = [b"[%d,%b,%b]" % (index, _encoder.encode(key.decode()), row) for index, key, row in rows]
    return (b'"total":%d,"rows":[%b],"drop":%d,"insert":%d' % (total, b",".join(parts), drop, insert)).decode()


def framed(event: Literal["snapshot", "delta"], id: int, version: int, body: str) -> str:
    """The whole frame of a body that many viewers share."""
    return f'{{"ev":"{event}","id":{id},"version":{version},{body}}}'


def _decode(text: str | bytes, decoder: msgspec.json.Decoder[_F], expected: str) -> _F:
    try:
        return decoder.decode(text)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise FrameError(Code.BAD_FRAME, f"expected a frame ({expected}), found: {error}", _id(text)) from None


def _id(text: str | bytes) -> int | None:
    try:
        return msgspec.json.decode(text, type=_Identified).id
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None
