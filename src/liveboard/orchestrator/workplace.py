"""What all parts of the orchestrator work with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import SparkSession

from liveboard.config import Settings
from liveboard.contract.errors import LiveboardError
from liveboard.contract.formats import FORMATS
from liveboard.contract.status import BoardStatus, GenerationRecord
from liveboard.kafka import trouble
from liveboard.kafka.admin import Admin
from liveboard.kafka.registry import Registry
from liveboard.orchestrator import leftovers
from liveboard.orchestrator.leftovers import Leftovers
from liveboard.orchestrator.losses import Losses
from liveboard.orchestrator.record import BoardRecord
from liveboard.orchestrator.running import NO_SLOTS, Running
from liveboard.orchestrator.schemas import Schemas
from liveboard.pipeline import session
from liveboard.pipeline.checkpoints import Checkpoints
from liveboard.pipeline.generation import Generation, one_line, reason
from liveboard.pipeline.plan import Plan

Log = Callable[[str], None]


class KafkaAccess(NamedTuple):
    """Kafka, as both clients see it."""

    client_config: Mapping[str, str]
    """Of librdkafka."""
    spark_options: Callable[[], Mapping[str, str]]
    """With the certificates as they are now."""
    admin: Admin


class Workplace:
    """Kafka, Spark, the record of the board and its generations. The document on record is the whole memory."""

    def __init__(
        self,
        settings: Settings,
        kafka: KafkaAccess,
        spark: SparkSession,
        record: BoardRecord,
        checkpoints: Checkpoints,
        schemas_file: Path,
        log: Log,
    ) -> None:
        self.settings = settings
        self.board = settings.board
        self.names = settings.names
        self.kafka = kafka
        self.admin = kafka.admin
        self.spark = spark
        self.record = record
        self.log = log
        registry = Registry(settings.registry) if settings.registry.url else None
        self.schemas = Schemas(self.board.sources.values(), registry, schemas_file, log)
        self.losses = Losses(kafka.admin, kafka.client_config, self.names, record, checkpoints, log)
        self.running = Running(self._generation, self.schemas, log, self.explain, self.losses.look)
        self.leftovers = Leftovers(self.names, kafka.admin, checkpoints)
        self.fingerprint = leftovers.fingerprint(settings, kafka.admin)
        self.usable = self.leftovers.usable(self.status, self.board, self.fingerprint)
        """The generations whose queries can go on."""
        self._checkpoints = checkpoints

    @property
    def status(self) -> BoardStatus:
        """The document on record."""
        return self.record.status

    def keep(self, status: BoardStatus) -> None:
        """Puts the document on record."""
        self.record.keep(status)

    def check_spark(self) -> None:
        """A LiveboardError if a cluster has ended our application, after which nothing runs in this process again."""
        if self.spark.sparkContext._jsc.sc().isStopped():
            raise LiveboardError(
                f"{self.settings.spark.master}: expected our application to run, found that the cluster has ended it "
                f"(the log is {self.settings.storage.dir / 'pipeline' / 'spark.log'}); started again, the pipeline "
                "goes on from its checkpoint"
            )

    def plan(self, name: str) -> Plan:
        """What a generation reads and writes."""
        record = self.status.generations[name]
        board = self.board.wired(record.wiring)
        with_schemas = [source for source in board.sources.values() if FORMATS[source.format].needs_schemas]
        return Plan(
            self.names,
            name,
            board,
            record.starting_offsets,
            self.kafka.spark_options(),
            {source.name: self.schemas.of(source) for source in with_schemas},
            session.cores(self.spark),
        )

    def ends(self, name: str) -> dict[str, int]:
        """Where the changelogs of a generation end now, by table."""
        changelogs = {table: self.names.changelog(name, table) for table in self.status.generations[name].tables}
        ends = self.admin.offsets(dict.fromkeys(changelogs.values(), 1), "latest")
        return {table: ends[topic]["0"] for table, topic in changelogs.items()}

    def explain(self, error: Exception | str) -> str:
        """What an error of Spark, Kafka or the disk means, in one line."""
        text = error if isinstance(error, str) else reason(error)
        if NO_SLOTS in text and (lacking := self._lacking_slots()):
            return lacking
        return one_line(trouble.of_spark(self.kafka.client_config, self.names, text))

    def slots_held(self) -> int:
        """The task slots that the generations in this process hold for ever."""
        records = [self.status.generations[name] for name in self.running.names]
        return sum(
            session.slots_needed(self.board.wired(record.wiring), partitions(record), leftovers.shuffles(record))
            for record in records
        )

    def _lacking_slots(self) -> str:
        """Says that Spark has too few for these generations; empty where it has enough, and others use some for now."""
        return session.lacking_slots(self.settings.spark.master, session.slots_now(self.spark), self.slots_held())

    def _generation(self, name: str) -> Generation:
        interval = f"{self.settings.spark.checkpoint_interval.milliseconds} milliseconds"
        return Generation(self.spark, lambda: self.plan(name), name, self._checkpoints, interval)


def partitions(record: GenerationRecord) -> dict[str, int]:
    """How many partitions the topics of a generation had when it began."""
    return {topic: len(offsets) for topic, offsets in record.starting_offsets.items()}
