"""What people keep on the server: named views of tables, boards of cards, which of them come first, and views in SQL.

Each is a record of one compacted topic, so that all replicas have the same. What is in a view or a board is the page's
own: the server only knows whose it is, and which tables it is about. A view in SQL is the server's: it becomes a table.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable
from enum import StrEnum

import msgspec

from liveboard.config import LimitSettings
from liveboard.contract.board import View
from liveboard.contract.frames import Code, FrameError, Role
from liveboard.contract.names import is_table_name
from liveboard.serving.auth import Grant
from liveboard.serving.gate import Forbidden

MAX_NAME = 80
_MAX_TABLES = 100
_LOADED_WITHIN_S = 3.0

_log = logging.getLogger(__name__)


class SavedKind(StrEnum):
    """What is kept."""

    VIEW = "view"
    """How a table is shown, under a name."""
    BOARD = "board"
    """Cards, under a name."""
    DEFAULT = "default"
    """The name of the view that a table begins with, or of the board where no table is named."""
    SQL = "sql"
    """A table that servers make of others, by the name of that table; always shared."""


class Place(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Where a document is kept; the key of its record."""

    owner: str | None
    """The name of a key; None for what is shared."""
    kind: SavedKind
    table: str
    name: str


class SavedDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is kept there; the value of its record."""

    state: msgspec.Raw
    tables: tuple[str, ...] = ()
    """The tables that a key must show to whoever sees the document."""


class Definition(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The state of a document of the kind SQL."""

    sql: str
    key: tuple[str, ...] = ()


class Kept(msgspec.Struct, frozen=True):
    """A document as its readers get it."""

    kind: SavedKind
    table: str
    name: str
    shared: bool
    state: msgspec.Raw


class Saved:
    """All documents of the board. Belongs to the event loop; the feed fills it, and so do those who write."""

    def __init__(self) -> None:
        self.position = 0
        """How far the feed has read the topic; the feed's own."""
        self.is_refused = False
        """Whether Kafka does not let the topic be read."""
        self.defined: Callable[[str, View | None], None] = lambda name, view: None
        """Who is told of the views in SQL that come, change, and go."""
        self._documents: dict[Place, SavedDocument] = {}
        self._taken = -1
        # What was written here and is not read yet, by its offset.
        self._ahead: dict[Place, int] = {}
        self._loaded = asyncio.Event()

    def take(self, key: bytes, value: bytes | None, offset: int) -> None:
        """A record of the topic."""
        self._taken = max(self._taken, offset)
        try:
            place = msgspec.json.decode(key, type=Place)
            document = None if value is None else _decoded(value)
        except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
            _log.error("saved view that cannot be read", extra={"offset": offset, "reason": str(error)})
            return
        if self._ahead.get(place, -1) > offset:
            return
        self._ahead.pop(place, None)
        self._put(place, document)

    def heard(self, is_refused: bool) -> None:
        """The topic is read to its end, does not exist yet, or may not be read."""
        self.is_refused = is_refused
        self._loaded.set()

    def wrote(self, place: Place, document: SavedDocument | None, offset: int) -> None:
        """A record that was written here, which is shown before it is read."""
        if offset > self._taken and offset > self._ahead.get(place, -1):
            self._ahead[place] = offset
            self._put(place, document)

    async def loaded(self) -> None:
        """Waits a moment until what there was at the start is known."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._loaded.wait(), _LOADED_WITHIN_S)

    def shown_to(self, grant: Grant) -> list[Kept]:
        """What a key may see: its own documents and the shared ones, unless they are about tables it does not show."""
        return [
            Kept(place.kind, place.table, place.name, place.owner is None, document.state)
            for place, document in self._documents.items()
            if place.owner in (None, grant.name) and all(map(grant.shows, _tables(place, document)))
        ]

    def check(self, grant: Grant, place: Place, document: SavedDocument, limits: LimitSettings) -> None:
        """Whether the key may keep the document there; otherwise a Forbidden or a FrameError."""
        check_place(grant, place)
        if len(document.tables) > _MAX_TABLES:
            raise FrameError(
                Code.BAD_FRAME, f"tables: expected up to {_MAX_TABLES} names, found {len(document.tables)}"
            )
        for table in _tables(place, document):
            if not is_table_name(table) or not grant.shows(table):
                raise FrameError(Code.UNKNOWN_TABLE, f'expected tables that the key shows, found "{table[:100]}"')
        others = sum(other.owner == place.owner for other in self._documents if other != place)
        if others >= limits.saved:
            whose = "shared ones" if place.owner is None else "ones of this key"
            raise FrameError(
                Code.TOO_MANY, f"expected up to {limits.saved} views and boards, found {others} {whose}; delete some"
            )

    def _put(self, place: Place, document: SavedDocument | None) -> None:
        if document is None:
            self._documents.pop(place, None)
        else:
            self._documents[place] = document
        if place.kind is SavedKind.SQL:
            try:
                self.defined(place.name, None if document is None else view_of(place, document))
            except FrameError as error:
                _log.error("view that cannot be read", extra={"view": place.name, "reason": str(error)})


def place_of(grant: Grant, parameters: Iterable[tuple[str, str]]) -> Place:
    """The place that query parameters name: kind, table, name and shared; otherwise a FrameError."""
    fields = {"kind": "", "table": "", "name": "", "shared": "false"}
    for parameter, text in parameters:
        if parameter not in fields:
            raise FrameError(Code.BAD_FRAME, f'expected {", ".join(fields)}, found "{parameter[:100]}"')
        fields[parameter] = text
    kind, table, name, shared = fields.values()
    if shared not in ("true", "false"):
        raise FrameError(Code.BAD_FRAME, f'shared: expected true or false, found "{shared[:100]}"')
    if kind not in tuple(SavedKind):
        raise FrameError(Code.BAD_FRAME, f'kind: expected {", ".join(SavedKind)}, found "{kind[:100]}"')
    if kind == SavedKind.VIEW or table:
        if not is_table_name(table) or not grant.shows(table):
            raise FrameError(Code.UNKNOWN_TABLE, f'expected a table that the key shows, found "{table[:100]}"')
        if kind in (SavedKind.BOARD, SavedKind.SQL):
            raise FrameError(Code.BAD_FRAME, f'expected no table for a {kind}, found "{table[:100]}"')
    if kind == SavedKind.DEFAULT:
        if name:
            raise FrameError(Code.BAD_FRAME, f'expected no name for a default, found "{name[:100]}"')
    elif kind == SavedKind.SQL:
        if not is_table_name(name) or len(name) > MAX_NAME:
            expected = f'expected a table name of up to {MAX_NAME} letters, digits and "_"'
            raise FrameError(Code.BAD_NAME, f'{expected}, found "{name[:100]}"')
        return Place(None, SavedKind.SQL, "", name)
    elif not (name.strip() == name and 0 < len(name) <= MAX_NAME and name.isprintable()):
        expected = f"expected a name of 1 to {MAX_NAME} characters without blanks around it"
        raise FrameError(Code.BAD_NAME, f'{expected}, found "{name[:100]}"')
    return Place(None if shared == "true" else grant.name, SavedKind(kind), table, name)


def check_place(grant: Grant, place: Place) -> None:
    """A Forbidden unless the key may change what is at the place."""
    if place.owner is None and grant.role is not Role.ADMIN:
        raise Forbidden(
            f"expected a key with the role admin to share or to change what is shared, found one with the role "
            f"{grant.role}; keep it for yourself instead"
        )


def document_of(body: bytes) -> SavedDocument:
    """The document in a request's body; otherwise a FrameError."""
    try:
        return _decoded(body)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise FrameError(Code.BAD_FRAME, f'expected {{"tables": […], "state": …}} as JSON, found: {error}') from None


def view_of(place: Place, document: SavedDocument) -> View:
    """The view that a document of the kind SQL defines; otherwise a FrameError."""
    try:
        definition = msgspec.json.decode(document.state, type=Definition)
    except msgspec.MsgspecError as error:
        expected = 'expected {"state": {"sql": "SELECT …", "key": […]}} as JSON'
        raise FrameError(Code.BAD_SQL, f"{expected}, found: {error}") from None
    return View(name=place.name, sql=definition.sql, key=definition.key)


def _decoded(body: bytes) -> SavedDocument:
    # As text, since what is kept raw is looked at no further.
    return msgspec.json.decode(body.decode(), type=SavedDocument)


def _tables(place: Place, document: SavedDocument) -> tuple[str, ...]:
    return (*document.tables, place.table) if place.table else document.tables
