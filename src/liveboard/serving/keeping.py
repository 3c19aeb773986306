"""Keeps views and boards: asks whether one may, writes to the topic, and shows what was written at once."""

from __future__ import annotations

import msgspec

from liveboard.config import LimitSettings
from liveboard.contract.errors import LiveboardError
from liveboard.contract.frames import Code, FrameError
from liveboard.kafka import trouble
from liveboard.serving.auth import Grant
from liveboard.serving.saved import Kept, Place, Saved, SavedDocument, SavedKind, check_place, document_of, view_of
from liveboard.serving.sql_views import SqlViews
from liveboard.serving.topic_writer import TopicWriter


class Keeping:
    """The documents that a key sees and changes; a LiveboardError where Kafka does not let it."""

    def __init__(
        self, saved: Saved, writer: TopicWriter, topic: str, limits: LimitSettings, sql: SqlViews | None = None
    ) -> None:
        self._sql = sql
        self._saved = saved
        self._writer = writer
        self._topic = topic
        self._limits = limits

    async def all(self, grant: Grant) -> list[Kept]:
        """What the key may see."""
        await self._saved.loaded()
        if self._saved.is_refused:
            raise LiveboardError(trouble.permission([self._topic]))
        return self._saved.shown_to(grant)

    async def put(self, grant: Grant, place: Place, body: bytes) -> None:
        """Keeps a document there."""
        await self._saved.loaded()
        document = document_of(body)
        if place.kind is SavedKind.SQL:
            check_place(grant, place)
            document = await self._defined(grant, place, document)
        self._saved.check(grant, place, document, self._limits)
        _, offset = await self._writer.write(msgspec.json.encode(document), msgspec.json.encode(place))
        self._saved.wrote(place, document, offset)

    async def remove(self, grant: Grant, place: Place) -> None:
        """Leaves nothing there."""
        check_place(grant, place)
        _, offset = await self._writer.write(None, msgspec.json.encode(place))
        self._saved.wrote(place, None, offset)

    async def _defined(self, grant: Grant, place: Place, document: SavedDocument) -> SavedDocument:
        """The same with the tables that the view reads; a FrameError if it cannot be answered."""
        if self._sql is None:
            raise FrameError(Code.BAD_SQL, "expected a server that answers SQL, found one that does not")
        return msgspec.structs.replace(document, tables=await self._sql.reads(grant, view_of(place, document)))
