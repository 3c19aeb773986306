"""Records that Kafka has deleted before they were read: found by their offsets, and never passed over in silence.

Retention deletes what is old, people delete records, and topics are deleted and made again. A stream fails when the
records vanish that it would read next. Whenever one is started, where it goes on is compared with where its topics
begin now. What lies between is told: by a row in the rejects, on record, and in the log. Then the checkpoint is moved
past it, since Spark would wait there for ever.

Compaction and transactions leave gaps too. They are not losses, since a topic begins before them.

A topic that was made again has other records at the same positions, so nothing that was made of the old one can go on:
the generation is not usable any more, and the wiring is built anew beside it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from confluent_kafka import KafkaError, Message, Producer
from msgspec.structs import replace as changed

from liveboard.contract.changelog import Value, encode_row, timestamp_text
from liveboard.contract.errors import LiveboardError
from liveboard.contract.names import REJECTS_TABLE, Names
from liveboard.contract.status import GenerationRecord, Lost
from liveboard.kafka.admin import Admin, Offsets
from liveboard.orchestrator.record import BoardRecord
from liveboard.pipeline.checkpoints import Checkpoints

_PATIENCE_S = 30.0


class MadeAgain(LiveboardError):
    """A topic is not the one that the generation has read."""


class Deletion(NamedTuple):
    """Records that Kafka has deleted before they were read: from `begin` up to, not including, `end`."""

    topic: str
    partition: int
    begin: int
    end: int

    @property
    def records(self) -> int:
        """How many positions it has."""
        return self.end - self.begin

    @property
    def sentence(self) -> str:
        """For people."""
        if self.records == 1:
            return f"record {self.begin} was deleted by Kafka before it was read (1 record)"
        return (
            f"records {self.begin} to {self.end - 1} were deleted by Kafka before all of them were read "
            f"({self.records:,} records)"
        )


def deletions(read: Offsets, begins: Offsets) -> list[Deletion]:
    """What is missing between the offsets to read next and the topics' beginnings; other partitions are new."""
    found = [
        Deletion(topic, int(partition), read.get(topic, {}).get(partition, 0), begin)
        for topic, partitions in begins.items()
        for partition, begin in partitions.items()
    ]
    return [deletion for deletion in found if deletion.records > 0]


def added(lost: Mapping[str, Lost], found: Iterable[Deletion]) -> dict[str, Lost]:
    """What is on record of a generation's losses, with these; one that is found again counts once."""
    after = dict(lost)
    for deletion in found:
        place = f"{deletion.topic}-{deletion.partition}"
        before = after.get(place, Lost(deletion.topic))
        again = before.newest if before.begin == deletion.begin else 0
        after[place] = Lost(deletion.topic, before.records - again + deletion.records, deletion.begin, deletion.records)
    return after


class Losses:
    """Compares what generations have read with what their topics still hold."""

    def __init__(
        self,
        admin: Admin,
        client_config: Mapping[str, str],
        names: Names,
        record: BoardRecord,
        checkpoints: Checkpoints,
        log: Callable[[str], None],
    ) -> None:
        self._admin = admin
        self._client_config = client_config
        self._names = names
        self._record = record
        self._checkpoints = checkpoints
        self._log = log
        self._cut: dict[str, set[str]] = {}

    def look(self, name: str) -> bool:
        """Whether records are missing that the generation's stream would read next.

        Tells which, and has the stream go on after them. A MadeAgain if its topics are others by now.
        """
        record = self._record.status.generations[name]
        there = self._admin.require(record.starting_offsets)
        checkpoint = self._checkpoints.read_up_to(name)
        read = checkpoint or record.starting_offsets
        ends = self._admin.offsets(there, "latest")
        self._cut[name] = {
            topic
            for topic, partitions in read.items()
            for partition, offset in partitions.items()
            if offset > ends.get(topic, {}).get(partition, 0)
        }
        if why := self.replaced(name):
            raise MadeAgain(why)
        found = deletions(read, self._admin.offsets(there, "earliest"))
        if not found:
            return False
        self._tell(name, found)
        after = _after(read, found)
        if checkpoint:
            self._checkpoints.go_on_from(name, after)
        else:
            # Nothing is remembered yet.
            self._checkpoints.remove(name)
            self._keep(name, changed(self._record.status.generations[name], starting_offsets=after))
        return True

    def look_at_build(self, name: str) -> None:
        """Tells which records a build may not have read because they were deleted since it was begun."""
        start = self._record.status.generations[name].starting_offsets
        counts = {topic: len(partitions) for topic, partitions in start.items()}
        self._tell(name, deletions(start, self._admin.offsets(counts, "earliest")))

    def replaced(self, name: str) -> str:
        """Says which topics of the generation were deleted and made again; empty while none was.

        One that ends before what was read of it counts too.
        """
        topics = self._record.status.generations[name].topics
        ids = self._admin.topic_ids(topics)
        others = {topic for topic, id in topics.items() if ids.get(topic, id) != id}
        again = sorted(others | self._cut.get(name, set()))
        return _made_again(again) if again else ""

    def tell_replaced(self, name: str) -> None:
        """Says in the rejects of a new generation which of its topics are not those of the live one any more."""
        status = self._record.status
        live, topics = status.generations.get(status.live or ""), status.generations[name].topics
        again = {topic for topic, id in (live.topics if live else {}).items() if topics.get(topic, id) != id}
        self._write(name, {f"{topic}+": [topic, 0, 0, _made_again([topic]), None] for topic in again})

    def _tell(self, name: str, found: list[Deletion]) -> None:
        if not found:
            return
        # A rejected record's key ends with its offset.
        rows = {
            f"{deletion.topic}-{deletion.partition}-{deletion.begin}+": [*deletion[:3], deletion.sentence, None]
            for deletion in found
        }
        self._write(name, rows)
        record = self._record.status.generations[name]
        told = changed(record, lost=added(record.lost, found))
        if told != record:
            self._keep(name, told)
            for deletion in found:
                self._log(f"{name}: of topic '{deletion.topic}', partition {deletion.partition}, {deletion.sentence}")

    def _keep(self, name: str, record: GenerationRecord) -> None:
        status = self._record.status
        self._record.keep(changed(status, generations={**status.generations, name: record}))

    def _write(self, name: str, rows: Mapping[str, Sequence[Value]]) -> None:
        """Puts rows into the rejects of a generation; writing one again changes nothing but its time."""
        if not rows:
            return
        failed: list[KafkaError] = []

        def delivered(error: KafkaError | None, _: Message) -> None:
            failed.extend([error] if error else [])

        topic, now = self._names.changelog(name, REJECTS_TABLE), timestamp_text(int(time.time() * 1000))
        producer = Producer({**self._client_config, "log_level": 0, "error_cb": lambda _: None})
        for key, row in rows.items():
            producer.produce(topic, encode_row([*row, now]), key.encode(), partition=0, on_delivery=delivered)
        if producer.flush(_PATIENCE_S) or failed:
            why = failed[0].str() if failed else "no answer"
            raise LiveboardError(f"cannot write to {topic} which records were deleted before they were read: {why}")


def _after(read: Offsets, found: Iterable[Deletion]) -> Offsets:
    after = {topic: dict(partitions) for topic, partitions in read.items()}
    for deletion in found:
        after.setdefault(deletion.topic, {})[str(deletion.partition)] = deletion.end
    return after


def _made_again(topics: list[str]) -> str:
    names = ", ".join(f"'{topic}'" for topic in topics)
    return (
        f"topic {names} was deleted and created again: its tables are built anew from what it holds now, and "
        "records of the former topic that were not read are lost"
    )
