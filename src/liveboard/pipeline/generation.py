"""One generation at work: built from the topics' history, then following them for ever."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from uuid import UUID

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from liveboard.errors import LiveboardError
from liveboard.pipeline.queries import TOMBSTONES, Plan, Trigger, prepare

_MAX_WORDS = 500
_CAUSED_BY = "Caused by: "
# One at a time, the joins first: they start to follow earlier, and viewers see less silence in a swap.
_PREPARING = ThreadPoolExecutor(1, "prepare")


class Generation:
    """Runs the two queries of one wiring over one checkpoint directory.

    `build` reads all that the topics held when it began, as one batch; `is_built` tells when the changelogs hold it.
    `follow` goes on from there, or from wherever a stop or crash left the checkpoint, record by record.
    """

    def __init__(self, spark: SparkSession, plan: Callable[[], Plan], checkpoint: Path, interval: str) -> None:
        """`plan` is asked for whenever queries are made: the certificates in it may have been renewed."""
        self._spark = spark
        self._plan = plan
        self._checkpoint = checkpoint
        self._interval = interval
        self._queries: dict[str, StreamingQuery] = {}
        self._following: dict[str, Future[DataStreamWriter]] = {}
        self._tombstones: dict[tuple[UUID, int], int] = {}

    def build(self) -> None:
        """Starts to bring the changelogs up to the topics' ends of now."""
        self._checkpoint.mkdir(parents=True, exist_ok=True)
        self._start(self._prepare({"availableNow": True}))
        # What comes after the build is made ready while it runs.
        self._following = self._prepare({"realTime": self._interval})

    def is_built(self) -> bool:
        """Whether the build has ended; a LiveboardError says why it failed."""
        if failures := self.failures():
            self.stop()
            raise LiveboardError("; ".join(f"the {name} query failed: {why}" for name, why in failures.items()))
        if any(query.isActive for query in self._queries.values()):
            return False
        self.tombstones()
        return True

    def part_built(self) -> float:
        """How much of the build is done, from 0 to 1, by the tasks that have ended."""
        tracker = self._spark.sparkContext.statusTracker()
        jobs = [tracker.getJobInfo(job) for q in self._queries.values() for job in tracker.getJobIdsForGroup(q.runId)]
        stages = [tracker.getStageInfo(stage) for job in jobs if job for stage in job.stageIds]
        tasks = sum(stage.numTasks for stage in stages if stage)
        return sum(stage.numCompletedTasks for stage in stages if stage) / tasks if tasks else 0.0

    def follow(self) -> None:
        """Starts the queries that are not running, in Real-Time Mode."""
        self._checkpoint.mkdir(parents=True, exist_ok=True)
        self._start(self._following or self._prepare({"realTime": self._interval}))
        self._following = {}

    def failures(self) -> dict[str, str]:
        """The queries that have ended with an error, and why."""
        errors = {name: query.exception() for name, query in self._queries.items() if not query.isActive}
        return {name: whole(error) for name, error in errors.items() if error is not None}

    def tombstones(self) -> int:
        """How many records without a value were skipped, as of the last checkpoint that this process has seen."""
        raw = self._queries.get("raw")
        progress = raw.lastProgress if raw else None
        if progress and TOMBSTONES in progress.observedMetrics:
            count = progress.observedMetrics[TOMBSTONES]["count"]
            self._tombstones[progress.runId, progress.batchId] = count
        return sum(self._tombstones.values())

    def stop(self) -> None:
        """Stops both queries; what they did since the last checkpoint is done again by the next `follow`."""
        for query in self._queries.values():
            query.stop()
        self._queries.clear()
        self._following.clear()

    def _start(self, prepared: Mapping[str, Future[DataStreamWriter]]) -> None:
        """Starts the queries that are not running."""
        for name, writer in prepared.items():
            if name not in self._queries or not self._queries[name].isActive:
                self._queries[name] = writer.result().start()

    def _prepare(self, trigger: Trigger) -> dict[str, Future[DataStreamWriter]]:
        """Puts the queries together, each of which takes a third of a second; the mapping has the order of starting."""
        plan = self._plan()
        names = ("join", "raw") if plan.board.joins else ("raw",)
        return {name: _PREPARING.submit(prepare, self._spark, plan, self._checkpoint, name, trigger) for name in names}


def whole(error: PySparkException) -> str:
    """All that a Spark error says and what was at the bottom of it, without the plan, which has all options."""
    bottom: Exception = error
    while cause := getattr(bottom, "_cause", None):
        bottom = cause
    text, found = (_without_plan(each) for each in (error, bottom))
    return text if found in text else f"{text}\n{_CAUSED_BY}{found}"


def one_line(error: object) -> str:
    """What an error or its text says, and what was at the bottom of it, as one line that people can read."""
    text = whole(error) if isinstance(error, PySparkException) else str(error)
    # What failed in a task comes as a text, with all its causes.
    causes = [line for line in text.split("\n") if line.startswith(_CAUSED_BY)]
    bottom = causes[-1].removeprefix(_CAUSED_BY).strip()[:_MAX_WORDS] if causes else ""
    said = " ".join(text.split())[:_MAX_WORDS]
    return said if bottom in said else f"{said} ({bottom})"


def _without_plan(error: Exception) -> str:
    return str(error).split("\n=== Streaming Query ===")[0]
