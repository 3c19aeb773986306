"""The orchestrator from its start to its end: waits for Kafka, starts Spark, and begins again when a login is lost."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from msgspec.structs import replace as changed
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from liveboard.config import Settings
from liveboard.contract.names import CONTROL_CHANGELOG, STATUS_TOPIC
from liveboard.contract.status import BoardStatus, Phase
from liveboard.errors import LiveboardError
from liveboard.kafka import security, trouble
from liveboard.kafka.admin import Admin
from liveboard.orchestrator.backoff import Backoff
from liveboard.orchestrator.control import ControlTopic
from liveboard.orchestrator.orchestrator import Connection, Log, Orchestrator
from liveboard.orchestrator.record import LoginLost, Record
from liveboard.pipeline import session
from liveboard.storage import owned

_KNOCK_S = 4.0


def run(settings: Settings, bootstrap: str, say: Log, stopping: threading.Event) -> None:
    """Keeps the board's tables up to date and follows the control topic until `stopping` is set.

    A stop or a crash at any moment loses nothing: the next run goes on where this one was.
    """

    def log(text: str) -> None:
        say(f"[orchestrator] {text}")

    with owned(settings.storage.dir / "pipeline", "pipeline") as directory:
        while not stopping.is_set():
            try:
                _work(settings, bootstrap, directory, log, stopping)
            except LoginLost as error:
                # Everything anew: clients use for ever the certificates that they began with.
                log(f"stopped, since Kafka does not let us in any more: {error}")


def _work(settings: Settings, bootstrap: str, directory: Path, log: Log, stopping: threading.Event) -> None:
    client_config = security.librdkafka(settings.kafka, bootstrap)
    admin = _connected(client_config, settings.control.topic, log, stopping)
    if admin is None:
        return
    with Record(client_config, admin, log, stopping) as record:
        left = record.newest() or BoardStatus(sources=())
        record.keep(changed(left, sources=tuple(settings.board.sources), phase=Phase.STARTING, message=""))
        log("starting Spark")
        with _last_words(record), _spark(settings, directory) as spark:
            connection = Connection(client_config, partial(security.java, settings.kafka, bootstrap), admin)
            orchestrator = Orchestrator(settings, connection, spark, record, directory, log, left)
            with ControlTopic(client_config, settings.control.topic, left.control, admin) as control:
                orchestrator.run(control, stopping)


def _connected(
    client_config: Mapping[str, str], control_topic: str, log: Log, stopping: threading.Event
) -> Admin | None:
    """Kafka, with the topics that everything else needs, as soon as it lets us; None when `stopping` is set before."""
    backoff, said = Backoff(_KNOCK_S), ""
    own = (STATUS_TOPIC, CONTROL_CHANGELOG)
    while not stopping.is_set():
        try:
            # Another one every time: a client that was refused tries again when it pleases.
            admin = Admin(client_config)
            admin.create_changelogs(own)
            admin.create([control_topic])
            admin.require_permissions(own, STATUS_TOPIC)
            if refused := admin.unreadable([*own, control_topic]):
                raise LiveboardError(trouble.permission(refused, "read"))
            return admin
        except LiveboardError as error:
            if str(error) != said:
                log(f"waiting for Kafka: {error}")
            said = str(error)
            stopping.wait(backoff.failed())
    return None


@contextmanager
def _last_words(record: Record) -> Iterator[None]:
    """If it ends with an error, the document says that the tables stand still, and why."""
    try:
        yield
    except LiveboardError as error:
        if record.kept:
            phase = Phase.RESTARTING if record.kept.live else Phase.FAILED
            record.keep(changed(record.kept, phase=phase, message=str(error)))
        raise


@contextmanager
def _spark(settings: Settings, directory: Path) -> Iterator[SparkSession]:
    """A Spark that is stopped at the end; if it is Spark that ended, says so."""
    try:
        spark = session.create(settings.spark, directory, security.java_system_properties(settings.kafka))
        try:
            yield spark
        except LoginLost:
            session.end(spark)
            raise
        session.end(spark)
    except (Py4JError, ConnectionError) as error:
        raise LiveboardError(
            f"the Spark process has died (its log is {directory / 'spark.log'}); "
            "started again, the pipeline goes on from its checkpoint"
        ) from error
