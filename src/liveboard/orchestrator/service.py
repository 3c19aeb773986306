"""The orchestrator from its start to its end: waits for Kafka, starts Spark, and begins again when a login is lost."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
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
from liveboard.orchestrator.ownership import KeptByAnother, Ownership, OwnershipLost
from liveboard.orchestrator.record import BoardRecord, LoginLost
from liveboard.orchestrator.standby import Standby
from liveboard.orchestrator.workplace import KafkaAccess, Log, Workplace
from liveboard.pipeline import sizing
from liveboard.pipeline.checkpoints import Checkpoints, local_address
from liveboard.pipeline.session import Launched, is_local

_KNOCK_S = 4.0


def run(
    settings: Settings,
    bootstrap: str,
    say: Log,
    stopping: threading.Event,
    watch: Callable[[Workplace], None] = lambda _: None,
    *,
    standby: bool = False,
) -> None:
    """Keeps the board's tables up to date and follows the control topic until `stopping` is set.

    A stop or a crash at any moment loses nothing: the next run goes on where this one was. With `standby` it waits as
    long as somebody else keeps the board.
    """

    def log(text: str) -> None:
        say(f"[orchestrator] {text}")

    with owned(settings.storage.dir / "pipeline", "pipeline") as directory:
        while not stopping.is_set():
            try:
                _Service(settings, bootstrap, directory, log, stopping, watch).run(standby)
            except LoginLost as error:
                # Everything anew: clients use for ever the certificates that they began with.
                log(f"stopped, since Kafka does not let us in any more: {error}")


class _Service:
    """One life of the orchestrator, with one set of clients."""

    def __init__(
        self,
        settings: Settings,
        bootstrap: str,
        directory: Path,
        log: Log,
        stopping: threading.Event,
        watch: Callable[[Workplace], None],
    ) -> None:
        self._settings = settings
        self._bootstrap = bootstrap
        self._directory = directory
        self._log = log
        self._stopping = stopping
        self._watch = watch
        self._client_config = security.librdkafka(settings.kafka, bootstrap)
        self._names = settings.names

    def run(self, standby: bool) -> None:
        """Works until the end; returns early where everything is stopping."""
        admin = _connected(self._client_config, self._names, self._log, self._stopping)
        if admin is None:
            return
        with ExitStack() as parts:
            launched = parts.enter_context(self._spark()) if standby else None
            ownership = self._owner(admin, launched, parts)
            if ownership is None:
                return
            record = parts.enter_context(
                BoardRecord(self._client_config, admin, ownership, self._names, self._log, self._stopping)
            )
            alerts = {name: AlertFigures() for name in self._settings.board.alerts}
            if alerts:
                create_topics(admin, self._names)
            sources = tuple(self._settings.board.sources)
            record.keep(changed(record.status, sources=sources, alerts=alerts, phase=Phase.STARTING, message=""))
            with _last_words(record), _named(self._directory):
                launched = launched or parts.enter_context(self._spark())
                self._work(admin, ownership, record, launched.session)

    def _owner(self, admin: Admin, waiting: Launched | None, parts: ExitStack) -> Ownership | None:
        """The board is ours; None when everything is stopping before. A standby is `waiting` with its Spark."""
        while True:
            if waiting and not Standby(self._client_config, admin, self._names, self._directory).wait(
                self._log, self._stopping, waiting.begin, waiting.rest
            ):
                return None
            try:
                return parts.enter_context(Ownership(self._client_config, self._names, self._directory))
            except KeptByAnother:
                if not waiting:
                    raise
                waiting.rest()

    def _work(self, admin: Admin, ownership: Ownership, record: BoardRecord, spark: SparkSession) -> None:
        settings, client_config, names = self._settings, self._client_config, self._names
        kafka = KafkaAccess(client_config, partial(security.java, settings.kafka, self._bootstrap), admin)
        checkpoints = Checkpoints(spark, checkpoint_root(settings, self._directory, admin))
        work = Workplace(settings, kafka, spark, record, checkpoints, self._directory / "schemas.json", self._log)
        self._watch(work)
        evaluator = Evaluator(
            settings.board,
            names,
            client_config,
            lambda: record.status,
            self._log,
            starts=work.running.starts,
            is_seen=work.running.was_seen,
            is_sure=ownership.is_sure,
            ends_with=OwnershipLost,
        )
        orchestrator = Orchestrator(work, ownership, lambda: evaluator.figures)
        with (
            _beside(evaluator) if settings.board.alerts else nullcontext(),
            ControlTopic(client_config, names.control, record.status.control, admin) as control,
        ):
            orchestrator.run(control, self._stopping)

    @contextmanager
    def _spark(self) -> Iterator[Launched]:
        """A Spark that is stopped at the end, unless everything ends with an error.

        On this machine it runs already. On a cluster it takes nothing from others before it is asked for.
        """
        self._log("starting Spark")
        spark = self._settings.spark
        properties = security.java_system_properties(self._settings.kafka)
        sizing.check(self._settings.board, spark.conf, self._log)
        with _named(self._directory):
            launched = Launched(
                spark, self._directory, properties, self._settings.storage, self._log, self._settings.board
            )
            if is_local(spark.master):
                _ = launched.session
        try:
            yield launched
        except LoginLost:
            launched.end()
            raise
        launched.end()


def checkpoint_root(settings: Settings, directory: Path, admin: Admin) -> str:
    """Where the board's checkpoints are: in the storage directory, or where all machines find them.

    Nobody deletes there what belongs to another board, or to one of the same name on another Kafka.
    """
    shared = settings.storage.checkpoints
    if not shared:
        return local_address(directory)
    address = shared if "://" in shared else local_address(Path(shared).resolve())
    return f"{address.rstrip('/')}/{settings.board.name}-{admin.cluster_id()}"


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
def _last_words(record: BoardRecord) -> Iterator[None]:
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
def _named(directory: Path) -> Iterator[None]:
    """If it is Spark that ended, says so."""
    try:
        yield
    except (Py4JError, ConnectionError) as error:
        raise LiveboardError(
            f"the Spark process has died (its log is {directory / 'spark.log'}); "
            "started again, the pipeline goes on from its checkpoint"
        ) from error
