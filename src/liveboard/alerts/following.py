"""Follows the tables of one generation, for as long as it is live, and says what begins and ends in them."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence

import orjson
from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, Consumer, Message, TopicPartition

from liveboard.alerts.settling import Settling
from liveboard.alerts.watch import AlertChange, Watch
from liveboard.contract.names import Names
from liveboard.contract.status import GenerationRecord
from liveboard.kafka.admin import Admin
from liveboard.kafka.reader import consumer_config, note_position

_BATCH = 5_000
_WAIT_S = 0.1


class WatchedTables:
    """Reads the tables that are watched from their beginning.

    It only gathers until all that is there has been read, and where the stream was started again, until that has
    written once more what it had written before. Then the watches are settled, and every change counts.
    """

    def __init__(
        self,
        client_config: Mapping[str, str],
        names: Names,
        admin: Admin,
        generation: str,
        record: GenerationRecord,
        watches: Sequence[Watch],
        sources: Iterable[str],
    ) -> None:
        self.generation = generation
        self.watches = watches
        self._admin = admin
        tables = list(dict.fromkeys(watch.table for watch in watches))
        self._watched = {
            names.changelog(generation, table): [watch for watch in watches if watch.table == table] for table in tables
        }
        self._widths = {names.changelog(generation, table): len(record.tables[table]) for table in tables}
        self._complete_at = {names.changelog(generation, table): record.complete_at.get(table, 0) for table in tables}
        self._sources = {names.changelog(generation, table): table for table in sources if table in record.tables}
        self._settling: Settling | None = None
        self._ends: Mapping[str, int] | None = None
        self._positions = dict.fromkeys(self._watched, 0)
        options = {"enable.partition.eof": True, "queued.max.messages.kbytes": 16_384}
        self._consumer = Consumer({**consumer_config(client_config), **options})
        self._consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING) for topic in self._watched])

    def close(self) -> None:
        """Ends the connection."""
        self._consumer.close()

    @property
    def is_settled(self) -> bool:
        """Whether every change counts now."""
        return all(watch.is_settled for watch in self.watches)

    def settle_anew(self, settling: Settling) -> None:
        """The stream was started again: nothing counts until it has come to what is new."""
        for watch in self.watches:
            watch.unsettle()
        self._ends = None
        if self._settling is None:
            self._consumer.incremental_assign([TopicPartition(topic, 0, OFFSET_END) for topic in self._only_sources])
        self._settling = settling

    def read(self, may_settle: bool = True) -> list[AlertChange]:
        """What has begun and ended; returns after a moment where nothing has."""
        first = self._consumer.poll(_WAIT_S)
        messages = [first, *self._consumer.consume(_BATCH, 0)] if first is not None else []
        changes: list[AlertChange] = []
        for topic, some in itertools.groupby(messages, Message.topic):
            for message in some:
                changes += self._take(topic or "", message)
        if self.is_settled:
            if len(messages) < _BATCH:
                # Otherwise more is there already, and may end what waits.
                for watch in self.watches:
                    changes += watch.due()
        elif may_settle and self._is_read():
            for watch in self.watches:
                changes += watch.settle()
        return changes

    @property
    def _only_sources(self) -> list[str]:
        return [topic for topic in self._sources if topic not in self._watched]

    def _take(self, topic: str, message: Message) -> list[AlertChange]:
        if not note_position(message, self._positions):
            return []
        value, written_ms = message.value(), message.timestamp()[1]
        if self._settling and topic in self._sources:
            self._settling.take(self._sources[topic], value, written_ms)
        watches = self._watched.get(topic)
        if watches is None:
            return []
        row = None if value is None else orjson.loads(value)
        if row is not None and (not isinstance(row, list) or len(row) != self._widths[topic]):
            return []
        key = (message.key() or b"").decode()
        return [change for watch in watches for change in watch.take(key, row, written_ms)]

    def _is_read(self) -> bool:
        """Whether what was there has been read; what counts as such is asked once the stream writes nothing old."""
        if self._settling:
            if not self._settling.is_over:
                return False
            self._consumer.incremental_unassign([TopicPartition(topic, 0) for topic in self._only_sources])
            self._settling = None
        if self._ends is None:
            found = self._admin.offsets(dict.fromkeys(self._watched, 1), "latest")
            self._ends = {topic: max(found[topic]["0"], at) for topic, at in self._complete_at.items()}
        return all(self._positions[topic] >= end for topic, end in self._ends.items())
