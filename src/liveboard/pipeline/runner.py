"""Runs the configured board: takes its generation up again or builds it, follows it, and heals it."""

from __future__ import annotations

import json
import shutil
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from liveboard.config import Board, Settings
from liveboard.contract.names import changelog_topic, generation_id, generation_number, parse_changelog_topic
from liveboard.contract.tables import table_columns
from liveboard.errors import LiveboardError
from liveboard.kafka import security
from liveboard.kafka.admin import Admin
from liveboard.pipeline import session
from liveboard.pipeline.generation import Generation
from liveboard.pipeline.queries import Wiring
from liveboard.storage import owned

_WATCH_S = 0.5
_LONGEST_BACKOFF_S = 30.0
_HEALTHY_AFTER_S = 60.0
_WIRING_FILE = "wiring.json"


def run(settings: Settings, bootstrap: str, report: Callable[[str], None], stopping: threading.Event) -> None:
    """Keeps the board's tables up to date until `stopping` is set; a stop at any moment loses nothing."""
    admin = Admin(security.librdkafka(settings.kafka, bootstrap))
    with owned(settings.storage.dir / "pipeline", "pipeline") as directory:
        partitions = _await_topics(admin, settings.board, report, stopping)
        if stopping.is_set():
            return
        wiring, checkpoint = _wiring(settings, bootstrap, admin, partitions, directory)
        slots = session.slots_needed(settings.board, partitions, _shuffle_partitions(settings))
        with _spark(settings, directory, slots, report) as spark:
            interval = f"{settings.spark.checkpoint_interval.milliseconds} milliseconds"
            generation = Generation(spark, wiring, checkpoint, interval)
            if not generation.built and wiring.starting_offsets == admin.offsets(partitions, "latest"):
                generation.nothing_to_build()
            elif not generation.built:
                report(f"building {wiring.generation} from the topics' history")
                generation.build(stopping.is_set)
            if not stopping.is_set():
                generation.follow()
                report(f"live: {wiring.generation}")
                _remove_others(admin, directory, wiring.generation)
                _watch(generation, report, stopping)
            generation.stop()


@contextmanager
def _spark(settings: Settings, directory: Path, slots: int, report: Callable[[str], None]) -> Iterator[SparkSession]:
    """A Spark that is stopped at the end; if it is Spark that ended, says so."""
    report("starting Spark")
    try:
        spark = session.create(settings.spark, directory, slots)
        yield spark
        session.end(spark)
    except (Py4JError, ConnectionError) as error:
        raise LiveboardError(
            f"the Spark process has died (its log is {directory / 'spark.log'}); "
            "started again, the pipeline goes on from its checkpoint"
        ) from error


def _await_topics(
    admin: Admin, board: Board, report: Callable[[str], None], stopping: threading.Event
) -> dict[str, int]:
    topics = {source.topic for source in board.sources.values()}
    awaited: set[str] = set()
    while not stopping.is_set():
        known = admin.partitions()
        missing = topics - known.keys()
        if not missing:
            return {topic: known[topic] for topic in topics}
        if missing != awaited:
            report(f"waiting for the topics {', '.join(sorted(missing))}, which do not exist yet")
            awaited = missing
        stopping.wait(_WATCH_S)
    return {}


def _wiring(
    settings: Settings, bootstrap: str, admin: Admin, partitions: dict[str, int], directory: Path
) -> tuple[Wiring, Path]:
    """The kept generation if it still fits the configuration and its changelogs are there, else a new one."""
    described = _described(settings, admin)
    known = admin.partitions()
    options = security.java(settings.kafka, bootstrap)
    kept = {path.name: path for path in _generations(directory)}
    for name in sorted(kept, key=generation_number, reverse=True):
        record = _read(kept[name] / _WIRING_FILE)
        changelogs = {changelog_topic(name, table) for table in table_columns(settings.board)}
        if record and record["wiring"] == described and changelogs <= known.keys():
            return Wiring(name, settings.board, record["starting_offsets"], options), kept[name]
    name = generation_id(1 + max(map(generation_number, {*kept, *_generations_in(known)}), default=0))
    offsets = admin.offsets(partitions, settings.kafka.start_from)
    admin.create_changelogs(changelog_topic(name, table) for table in table_columns(settings.board))
    checkpoint = directory / name
    checkpoint.mkdir()
    # Written last and in one step: a generation without it was never begun.
    draft = checkpoint / (_WIRING_FILE + ".draft")
    draft.write_text(json.dumps({"wiring": described, "starting_offsets": offsets}))
    draft.rename(checkpoint / _WIRING_FILE)
    return Wiring(name, settings.board, offsets, options), checkpoint


def _shuffle_partitions(settings: Settings) -> int:
    return int(settings.spark.conf.get("spark.sql.shuffle.partitions", session.SHUFFLE_PARTITIONS))


def _described(settings: Settings, admin: Admin) -> dict[str, Any]:
    sources = {name: asdict(source) for name, source in settings.board.sources.items()}
    joins = {name: asdict(join) for name, join in settings.board.joins.items()}
    described = {
        "cluster": admin.cluster_id(),
        "start_from": settings.kafka.start_from,
        "shuffle_partitions": _shuffle_partitions(settings),
        "sources": sources,
        "joins": joins,
    }
    comparable: dict[str, Any] = json.loads(json.dumps(described))
    return comparable


def _remove_others(admin: Admin, directory: Path, generation: str) -> None:
    topics = [(topic, parse_changelog_topic(topic)) for topic in admin.partitions()]
    admin.delete(topic for topic, parsed in topics if parsed and parsed[0] != generation)
    for path in _generations(directory):
        if path.name != generation:
            shutil.rmtree(path)


def _watch(generation: Generation, report: Callable[[str], None], stopping: threading.Event) -> None:
    """Tells of skipped records; restarts queries that die, each time waiting longer while they keep dying."""
    backoff, since, skipped = 1.0, time.monotonic(), 0
    while not stopping.wait(_WATCH_S):
        if (tombstones := generation.tombstones()) > skipped:
            skipped = tombstones
            report(f"skipped {skipped:,} records without a value (tombstones) so far")
        failures = generation.failures()
        if not failures:
            if time.monotonic() - since > _HEALTHY_AFTER_S:
                backoff = 1.0
            continue
        for name, why in failures.items():
            report(f"the {name} query failed and starts again in {backoff:.0f} s: {why}")
        stopping.wait(backoff)
        backoff, since = min(2 * backoff, _LONGEST_BACKOFF_S), time.monotonic()
        if not stopping.is_set():
            generation.follow()
            report(f"live: {generation.name}")


def _generations(directory: Path) -> list[Path]:
    return [path for path in directory.iterdir() if path.is_dir() and _is_generation(path.name)]


def _generations_in(topics: Iterable[str]) -> set[str]:
    return {parsed[0] for topic in topics if (parsed := parse_changelog_topic(topic))}


def _is_generation(name: str) -> bool:
    return name[:1] == "g" and name[1:].isdigit()


def _read(file: Path) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = json.loads(file.read_text())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise LiveboardError(f"{file}: expected the record of a generation, found: {error}") from None
    return found
