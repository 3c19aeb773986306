"""What an earlier orchestrator has left: what can be used again, and what belongs to nothing any more."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from msgspec.structs import replace as changed

from liveboard.config import Settings
from liveboard.contract.board import Board
from liveboard.contract.names import Names, generation_number
from liveboard.contract.status import BoardStatus, GenerationRecord, Phase, State
from liveboard.kafka.admin import Admin
from liveboard.orchestrator.schemas import file_texts
from liveboard.pipeline import session
from liveboard.pipeline.checkpoints import Checkpoints
from liveboard.pipeline.follow import STATE_FORMAT

SHUFFLES = "shuffle_partitions"


def shuffles(record: GenerationRecord) -> int:
    """In how many partitions the generation's joins are computed: as many as it began with."""
    return int(record.fingerprint.get(SHUFFLES, session.SHUFFLE_PARTITIONS))


def fingerprint(settings: Settings, admin: Admin) -> dict[str, Any]:
    """What checkpoints depend on beside the wiring; another one means that generations must be built anew."""
    sources = {name: asdict(source) for name, source in settings.board.sources.items()}
    joins = {name: asdict(join) for name, join in settings.board.joins.items()}
    for part, wired in ((sources, "topic"), (joins, "how")):
        for table in part.values():
            del table[wired]
    described = {
        "state_format": STATE_FORMAT,
        "cluster": admin.cluster_id(),
        "start_from": settings.kafka.start_from,
        "sources": sources,
        "joins": joins,
    }
    if shuffle_partitions := session.configured_shuffle_partitions(settings.spark):
        described[SHUFFLES] = shuffle_partitions
    if settings.board.aggregates:
        described["aggregates"] = {name: asdict(each) for name, each in settings.board.aggregates.items()}
    if files := file_texts(settings.board.sources.values()):
        described["avro_schema_files"] = files
    comparable: dict[str, Any] = json.loads(json.dumps(described))
    return comparable


def _fits(record: Mapping[str, Any], current: Mapping[str, Any]) -> bool:
    """Where the number of partitions is derived, a generation keeps the one that it began with."""
    derived = {} if SHUFFLES in current else {SHUFFLES: record.get(SHUFFLES)}
    return record == {**current, **derived}


class Leftovers:
    """What Kafka and the storage still hold of a board's generations."""

    def __init__(self, names: Names, admin: Admin, checkpoints: Checkpoints) -> None:
        self._names = names
        self._admin = admin
        self._checkpoints = checkpoints

    def usable(self, status: BoardStatus, board: Board, current: Mapping[str, Any]) -> set[str]:
        """The generations whose queries can go on.

        The board, the cluster and the topics are the same, checkpoint and changelogs are still there.
        """
        topics = self._admin.partitions().keys()
        ids = self._admin.topic_ids(
            topics & {topic for record in status.generations.values() for topic in record.topics}
        )

        def is_whole(name: str) -> bool:
            record = status.generations[name]
            if record.state is State.BUILDING:
                return True  # it is completed by building it
            changelogs = {self._names.changelog(name, table) for table in record.tables}
            return changelogs <= topics and self._checkpoints.exists(name)

        return {
            name
            for name, record in status.generations.items()
            if _fits(record.fingerprint, current)
            and board.fits(record.wiring)
            and all(ids.get(topic, id) == id for topic, id in record.topics.items())
            and is_whole(name)
        }

    def lacking(self, status: BoardStatus, name: str) -> str:
        """Says which changelogs of a generation are gone; empty while none is."""
        topics = {self._names.changelog(name, table) for table in status.generations[name].tables}
        gone = sorted(topics - self._admin.partitions().keys())
        return f"its topics {', '.join(gone)} are gone" if gone else ""

    def taken_up(self, status: BoardStatus, board: Board) -> BoardStatus:
        """The document to go on with: what was asked for only as far as it is of this board."""
        numbers = map(generation_number, self._generations())
        return changed(
            status,
            sources=tuple(board.sources),
            newest=max([status.newest, *numbers]),
            applied=status.applied if status.applied and board.fits(status.applied) else None,
            request=status.request if status.request and board.fits(status.request.wiring) else None,
            phase=Phase.STARTING,
            message="",
        )

    def sweep(self, status: BoardStatus) -> None:
        """Deletes the changelogs and checkpoints of generations that are not on record."""
        for name in self._generations() - status.generations.keys():
            self.remove(name)

    def sweep_checkpoints(self, status: BoardStatus) -> None:
        """Deletes what slow tasks have written after the checkpoint of their generation was removed."""
        for name in self._checkpoints.generations() - status.generations.keys():
            self._checkpoints.remove(name)

    def remove(self, name: str) -> None:
        """Deletes the topics and the checkpoint of a generation."""
        self._admin.delete(topic for topic in self._admin.partitions() if self._names.generation_of(topic) == name)
        self._checkpoints.remove(name)

    def _generations(self) -> set[str]:
        in_kafka = {name for topic in self._admin.partitions() if (name := self._names.generation_of(topic))}
        return in_kafka | self._checkpoints.generations()
