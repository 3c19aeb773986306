"""Follows the tables by key of one generation and writes what the groups of its aggregates come to.

All that it remembers is in Kafka: the table has the rows, and the aggregate's changelog what was written. It can end
at any moment. Whoever comes next reads both and writes the differences.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import orjson
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Message, Producer, TopicPartition

from liveboard.contract.board import Aggregate, Board
from liveboard.contract.errors import LiveboardError
from liveboard.contract.names import Names
from liveboard.counting.groups import Groups
from liveboard.kafka.admin import Admin
from liveboard.kafka.reader import consumer_config, note_position

_BATCH = 5_000
_WAIT_S = 0.1
_PATIENCE_S = 30.0
# Others can have the board a little later than we were sure to have it: what is late by then is not sent at all.
_TIMEOUT_MS = 3_000


def counted(board: Board) -> dict[str, Aggregate]:
    """The aggregates over tables by key; all others are made by the pipeline."""
    return {name: each for name, each in board.aggregates.items() if board.sources[each.source].by_key}


class CountedTables:
    """Reads the tables from their beginning, and what was written of the groups; then writes every change.

    `is_sure` says whether nobody else can keep the board now.
    """

    def __init__(
        self,
        client_config: Mapping[str, str],
        names: Names,
        admin: Admin,
        board: Board,
        generation: str,
        is_sure: Callable[[], bool],
    ) -> None:
        self._is_sure = is_sure
        self._groups: dict[str, Groups] = {}
        """By the changelog that they are written to."""
        self._readers: dict[str, list[Groups]] = {}
        """By the changelog that they are made from."""
        self._widths: dict[str, int] = {}
        for name, aggregate in counted(board).items():
            source = board.sources[aggregate.source]
            groups, table = Groups(aggregate, source), names.changelog(generation, source.table)
            self._groups[names.changelog(generation, name)] = groups
            self._readers.setdefault(table, []).append(groups)
            self._widths[table] = len(source.columns) + 1
        self._written: dict[str, dict[bytes, bytes | None]] = {topic: {} for topic in self._groups}
        topics = dict.fromkeys([*self._readers, *self._groups], 1)
        self._ends = {topic: at["0"] for topic, at in admin.offsets(topics, "latest").items()}
        self._positions = dict.fromkeys(topics, 0)
        self._is_begun = False
        self._consumer = Consumer({**consumer_config(client_config), "enable.partition.eof": True})
        self._consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING) for topic in topics])
        limits: dict[str, Any] = {"enable.idempotence": "true", "message.timeout.ms": str(_TIMEOUT_MS)}
        quiet = {"linger.ms": "0", "log_level": 0, "error_cb": lambda _: None}
        self._producer = Producer({**client_config, **limits, **quiet})

    def close(self) -> None:
        """Ends the connections."""
        self._consumer.close()
        self._producer.purge()

    def advance(self) -> None:
        """Takes what has come and writes what changes; returns after a moment where nothing comes."""
        first = self._consumer.poll(_WAIT_S)
        for message in [first, *self._consumer.consume(_BATCH, 0)] if first is not None else []:
            self._take(message)
        if not self._is_begun:
            if any(self._positions[topic] < end for topic, end in self._ends.items()):
                return
            self._consumer.incremental_unassign([TopicPartition(topic, 0) for topic in self._groups])
            for topic, groups in self._groups.items():
                self._write(topic, dict.fromkeys(self._written[topic].keys() - groups.keys()))
        for topic, groups in self._groups.items():
            self._write(topic, groups.changed())
        self._is_begun = True

    @property
    def is_begun(self) -> bool:
        """Whether it has read and counted what was there when it was made."""
        return self._is_begun

    def _take(self, message: Message) -> None:
        if not note_position(message, self._positions):
            return
        topic, key, value = message.topic() or "", message.key() or b"", message.value()
        if topic in self._written:
            if not self._is_begun:
                self._written[topic][key] = value
            return
        row = None if value is None else orjson.loads(value)
        if row is None or (isinstance(row, list) and len(row) == self._widths[topic]):
            for groups in self._readers[topic]:
                groups.take(key, row)

    def _write(self, topic: str, rows: Mapping[bytes, bytes | None]) -> None:
        """Writes what is not there already; a LiveboardError if Kafka has not taken it all, or if we may not."""
        written, errors = self._written[topic], list[str]()
        new = {key: row for key, row in rows.items() if written.get(key) != row}
        if not new:
            return
        if not self._is_sure():
            raise LiveboardError("expected Kafka to confirm that this board is ours, found no answer yet")
        try:
            for key, row in new.items():
                self._producer.produce(
                    topic,
                    row,
                    key,
                    partition=0,
                    on_delivery=lambda error, _: errors.append(error.str()) if error else None,
                )
                self._producer.poll(0)
            left = self._producer.flush(_PATIENCE_S)
        except (KafkaException, BufferError) as error:
            raise LiveboardError(f"cannot write to {topic}: {error}") from error
        if left or errors:
            self._producer.purge()
            raise LiveboardError(f"cannot write to {topic}: {errors[0] if errors else 'no answer'}")
        for key, row in new.items():
            if row is None:
                written.pop(key, None)
            else:
                written[key] = row
