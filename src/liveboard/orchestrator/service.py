"""The orchestrator from its start to its end: waits for Kafka, starts Spark, and begins again when a login is lost."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path

from msgspec.structs import replace as changed
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from liveboard.alerts.evaluator import Evaluator
from liveboard.alerts.memory import create_topics
from liveboard.backoff import Backoff
from liveboard.config import Settings
from liveboard.config.storage import owned
from liveboard.contract.errors import LiveboardError
from liveboard.contract.names import Names
from liveboard.contract.status import AlertFigures, Phase
from liveboard.kafka import security, trouble
from liveboard.kafka.admin import Admin
from liveboard.orchestrator.control import ControlTopic
from liveboard.orchestrator.orchestrator import Orchestrator
from liveboard.orchestrator.ownership import Ownership, OwnershipLost
from liveboard.orchestrator.record import LoginLost, Record
from liveboard.orchestrator.workplace import KafkaAccess, Log, Workplace
from liveboard.pipeline import session
from liveboard.pipeline.checkpoints import Checkpoints

_KNOCK_S = 4.0


def run(
    settings: Settings,
    bootstrap: str,
    say: Log,
    stopping: threading.Event,
    watch: Callable[[Workplace], None] = lambda _: None,
) -> None:
    """Keeps the board's tables up to date and follows the control topic until `stopping` is set.

    A stop or a crash at any moment loses nothing: the next run goes on where this one was.
    """

    def log(text: str) -> None:
        say(f"[orchestrator] {text}")

    with owned(settings.storage.dir / "pipeline", "pipeline") as directory:
        while not stopping.is_set():
            try:
                _work(settings, bootstrap, directory, log, stopping, watch)
            except LoginLost as error:
                # Everything anew: clients use for ever the certificates that they began with.
                log(f"stopped, since Kafka does not let us in any more: {error}")


def _work(
    settings: Settings,
    bootstrap: str,
    directory: Path,
    log: Log,
    stopping: threading.Event,
    watch: Callable[[Workplace], None],
) -> None:
    client_config = security.librdkafka(settings.kafka, bootstrap)
    names = settings.names
    admin = _connected(client_config, names, log, stopping)
    if admin is None:
        return
    with (
        Ownership(client_config, names, directory) as ownership,
        Record(client_config, admin, ownership, names, log, stopping) as record,
    ):
        sources = tuple(settings.board.sources)
        alerts = {name: AlertFigures() for name in settings.board.alerts}
        if alerts:
            create_topics(admin, names)
        record.keep(changed(record.status, sources=sources, alerts=alerts, phase=Phase.STARTING, message=""))
        log("starting Spark")
        with _last_words(record), _spark(settings, directory) as spark:
            kafka = KafkaAccess(client_config, partial(security.java, settings.kafka, bootstrap), admin)
            checkpoints = Checkpoints(spark, directory.as_uri())
            work = Workplace(settings, kafka, spark, record, checkpoints, directory / "schemas.json", log)
            watch(work)
            evaluator = Evaluator(
                settings.board,
                names,
                client_config,
                lambda: record.status,
                log,
                starts=work.running.starts,
                is_sure=ownership.is_sure,
                ends_with=OwnershipLost,
            )
            orchestrator = Orchestrator(work, ownership.is_sure, lambda: evaluator.figures)
            with (
                _beside(evaluator) if settings.board.alerts else nullcontext(),
                ControlTopic(client_config, names.control, record.status.control, admin) as control,
            ):
                orchestrator.run(control, stopping)


@contextmanager
def _beside(evaluator: Evaluator) -> Iterator[None]:
    """The alerts are evaluated meanwhile; that never stops anything else."""
    ending = threading.Event()
    thread = threading.Thread(target=evaluator.run, args=(ending,), name="alerts", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ending.set()
        thread.join(_KNOCK_S)


def _connected(client_config: Mapping[str, str], names: Names, log: Log, stopping: threading.Event) -> Admin | None:
    """Kafka, with the topics that everything else needs, as soon as it lets us; None when `stopping` is set before."""
    backoff, said = Backoff(_KNOCK_S), ""
    own = (names.status, names.verdicts, names.owner)
    while not stopping.is_set():
        try:
            # Another one every time: a client that was refused tries again when it pleases.
            admin = Admin(client_config)
            admin.create_changelogs((names.status, names.verdicts))
            admin.create_log(names.owner)
            admin.create([names.control])
            admin.require_permissions(own, names.status)
            if refused := admin.unreadable([*own, names.control]):
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
    except OwnershipLost:
        raise
    except LiveboardError as error:
        phase = Phase.RESTARTING if record.status.live else Phase.FAILED
        record.keep(changed(record.status, phase=phase, message=str(error)))
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
