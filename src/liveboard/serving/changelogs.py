"""The changelogs that a server follows, and what has been read of each."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator

from confluent_kafka import Message

from liveboard.contract.changelog import is_row
from liveboard.contract.names import ALERTS_TABLE, CONTROL_TABLE, Names
from liveboard.contract.schema import Column
from liveboard.contract.status import ALERTS_COLUMNS, CONTROL_COLUMNS, BoardStatus, State
from liveboard.serving.catalogue import FOLLOWED
from liveboard.serving.table import Change, Table

_log = logging.getLogger(__name__)


class Changelog:
    """One changelog: gathered until all that its table must begin with is read, then handed on change by change."""

    def __init__(self, topic: str, generation: str | None, name: str, columns: tuple[Column, ...]) -> None:
        self.topic = topic
        self.generation = generation
        self.name = name
        self.columns = columns
        self.position = 0
        self.complete_at: int | None = None
        """Where the build ended; None while it runs."""
        self.end: int | None = None
        """Where the topic ended when the build was known to be complete; None until it is asked."""
        self.is_loaded = False
        self.changes: list[Change] = []
        self._gathered: dict[bytes, bytes] = {}

    @property
    def is_read(self) -> bool:
        """Whether all that the table must begin with has been gathered."""
        return (
            self.complete_at is not None and self.end is not None and self.position >= max(self.complete_at, self.end)
        )

    def take(self, messages: Iterable[Message]) -> list[Message]:
        """Takes the rows out of the messages; returns those that are errors or ends."""
        gathered, changes, is_loaded = self._gathered, self.changes, self.is_loaded
        others: list[Message] = []
        last: Message | None = None
        for message in messages:
            key, value = message.key(), message.value()
            if key is None:
                # Errors and ends have no key either.
                if message.error() is not None:
                    others.append(message)
                    continue
                self._no_row(message)
            elif value is None:
                if is_loaded:
                    changes.append((key, None))
                else:
                    gathered.pop(key, None)
            elif not is_row(value):
                self._no_row(message)
            elif is_loaded:
                changes.append((key, value))
            else:
                gathered[key] = value
            last = message
        if last is not None:
            self.position = (last.offset() or 0) + 1
        return others

    def begin_with(self, rows: dict[bytes, bytes], position: int) -> None:
        """Takes rows as gathered from what is before the position."""
        self._gathered, self.position = rows, position

    def load(self, max_rows: int) -> Table:
        """The table as gathered."""
        gathered, self._gathered = self._gathered, {}
        self.is_loaded = True
        return Table.in_order(self.name, self.generation, self.columns, gathered, max_rows)

    def _no_row(self, message: Message) -> None:
        _log.error("no row", extra={"topic": self.topic, "offset": message.offset()})


class Changelogs:
    """Those of every generation that is building, live or retiring, and those of control messages and alerts."""

    def __init__(self, names: Names) -> None:
        self._names = names
        control = Changelog(names.verdicts, None, CONTROL_TABLE, CONTROL_COLUMNS)
        control.complete_at = 0
        self._by_topic = {control.topic: control}

    def __iter__(self) -> Iterator[Changelog]:
        return iter(self._by_topic.values())

    def get(self, topic: str) -> Changelog | None:
        """The changelog in the topic, if it is followed."""
        return self._by_topic.get(topic)

    def follow(self, status: BoardStatus) -> tuple[list[Changelog], list[Changelog]]:
        """Follows what the status names from now on; returns the changelogs that are new, and those that are left."""
        before = self._by_topic
        control = self._names.verdicts
        self._by_topic = {control: before[control]}
        if status.alerts:
            raised = Changelog(self._names.raised, None, ALERTS_TABLE, ALERTS_COLUMNS)
            raised.complete_at = 0
            self._by_topic[raised.topic] = before.get(raised.topic) or raised
        for generation, record in status.generations.items():
            if record.state not in FOLLOWED:
                continue
            for name, columns in record.tables.items():
                topic = self._names.changelog(generation, name)
                changelog = before.get(topic) or Changelog(topic, generation, name, columns)
                is_shown = record.state is not State.BUILDING or generation == status.shown
                if is_shown and changelog.complete_at is None:
                    changelog.complete_at = record.complete_at.get(name, 0)
                self._by_topic[topic] = changelog
        new = [changelog for topic, changelog in self._by_topic.items() if topic not in before]
        left = [changelog for topic, changelog in before.items() if topic not in self._by_topic]
        return new, left
