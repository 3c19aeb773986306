"""What an earlier orchestrator has left: what can be used again, and what belongs to nothing any more."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from msgspec.structs import replace as changed

from liveboard.config import Board, Settings
from liveboard.contract.names import changelog_topic, generation_number, parse_changelog_topic
from liveboard.contract.status import BoardStatus, Phase, State
from liveboard.kafka.admin import Admin
from liveboard.orchestrator.generations import fits
from liveboard.pipeline import session
from liveboard.pipeline.queries import STATE_FORMAT


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
        "shuffle_partitions": session.shuffle_partitions(settings.spark),
        "sources": sources,
        "joins": joins,
    }
    comparable: dict[str, Any] = json.loads(json.dumps(described))
    return comparable


def usable(status: BoardStatus, board: Board, current: Mapping[str, Any], admin: Admin) -> set[str]:
    """The generations whose queries can go on: same board, same cluster, checkpoint and changelogs still there."""
    topics = admin.partitions().keys()

    def whole(name: str) -> bool:
        record = status.generations[name]
        if record.state is State.BUILDING:
            return True  # it is completed by building it
        changelogs = {changelog_topic(name, table) for table in record.tables}
        return changelogs <= topics and Path(record.checkpoint).is_dir()

    return {
        name
        for name, record in status.generations.items()
        if record.fingerprint == current and fits(board, record.wiring) and whole(name)
    }


def taken_up(status: BoardStatus, board: Board, admin: Admin, directory: Path) -> BoardStatus:
    """The document to go on with: what was asked for only as far as it is of this board."""
    numbers = map(generation_number, _in_kafka(admin) | _on_disk(directory).keys())
    return changed(
        status,
        sources=tuple(board.sources),
        newest=max([status.newest, *numbers]),
        applied=status.applied if status.applied and fits(board, status.applied) else None,
        request=status.request if status.request and fits(board, status.request.wiring) else None,
        phase=Phase.STARTING,
        message="",
    )


def sweep(status: BoardStatus, admin: Admin, directory: Path) -> None:
    """Deletes the changelogs and checkpoints of generations that are not on record."""
    strangers = (_in_kafka(admin) | _on_disk(directory).keys()) - status.generations.keys()
    topics = {topic: parse_changelog_topic(topic) for topic in admin.partitions()}
    admin.delete(topic for topic, parsed in topics.items() if parsed and parsed[0] in strangers)
    for name, path in _on_disk(directory).items():
        if name in strangers:
            shutil.rmtree(path)


def _in_kafka(admin: Admin) -> set[str]:
    return {parsed[0] for topic in admin.partitions() if (parsed := parse_changelog_topic(topic))}


def _on_disk(directory: Path) -> dict[str, Path]:
    paths = [path for path in directory.iterdir() if path.is_dir()]
    return {path.name: path for path in paths if path.name[:1] == "g" and path.name[1:].isdigit()}
