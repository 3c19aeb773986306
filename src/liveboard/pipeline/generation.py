"""One generation at work: built from the topics' history, then following them for ever."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from uuid import UUID

from py4j.protocol import Py4JJavaError
from pyspark import SparkStageInfo
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from liveboard.contract.errors import LiveboardError
from liveboard.kafka.admin import Offsets, total
from liveboard.pipeline import history
from liveboard.pipeline.checkpoints import Checkpoints
from liveboard.pipeline.follow import TOMBSTONES, following, remembering
from liveboard.pipeline.plan import Plan

_MAX_WORDS = 500
_CAUSED_BY = "Caused by: "
_NO_MEMORY = (
    "Spark ran out of memory: expected its heap to be large enough for the board, found it full; give it more with "
    "spark.driver.memory in [spark.conf] (640m by default), and more to the machine if it has no more"
)
_LOOK_S = 0.02
# In Real-Time Mode all tasks run at once. When one fails, Spark may name the one that read from it.
_CONSEQUENCE = "closed before termination"
_KILLED = "TaskKilled"
_CAUSE_S = 2.0
_MOST_TASKS = 1_000
# Records up to which both parts of a build run at once. With more, each has to spill for the memory of the other, and
# together they take a third longer than one after the other: the rows first, since people wait for them.
_SIDE_BY_SIDE = 200_000


class Generation:
    """Runs the batch jobs and the stream of one wiring over its checkpoint.

    `build` reads all that the topics held when it began. A batch job writes the rows, a stream remembers the same
    records. `is_built` tells when both have ended. `follow` has the stream go on from there, or from wherever
    a stop or crash left the checkpoint, record by record. `repair` writes rows that the stream could not answer.
    """

    def __init__(
        self, spark: SparkSession, plan: Callable[[], Plan], name: str, checkpoints: Checkpoints, interval: str
    ) -> None:
        """`plan` is asked for whenever queries are made: the certificates in it may have been renewed."""
        self._spark = spark
        self._plan = plan
        self._name = name
        self._checkpoints = checkpoints
        self._interval = interval
        self._stream: StreamingQuery | None = None
        self._building: Future[None] | None = None
        self._following: Future[DataStreamWriter] | None = None
        self._starting = threading.Lock()
        self._stopped = threading.Event()
        self._written = threading.Event()
        self._tombstones: dict[tuple[UUID, int], int] = {}
        self._threads = ThreadPoolExecutor(2, "build")

    def forget(self) -> None:
        """Begins anew: what an interrupted build remembers is of no use, since its rows were perhaps not written."""
        self._checkpoints.remove(self._name)

    def build(self) -> None:
        """Starts to bring the changelogs up to the topics' ends of now."""
        self.forget()
        self._stopped = threading.Event()
        self._written.clear()
        self._building = self._threads.submit(self._build, self._plan(), self._stopped)
        self.prepare()

    def is_built(self) -> bool:
        """Whether the build has ended; a LiveboardError says why it failed."""
        if why := self.failure():
            self.stop()
            raise LiveboardError(why)
        if self._building and not self._building.done():
            return False
        self.tombstones()
        return True

    def is_written(self) -> bool:
        """Whether a build has written all its rows; it may still be remembering records."""
        return self._written.is_set()

    def part_built(self) -> float:
        """How much of the build is done, from 0 to 1, by the tasks that have ended: half of it is remembering."""
        remembered = self._part_done(str(self._stream.runId)) if self._stream else 0.0
        return (remembered + self._part_done(self._job_group)) / 2

    def _part_done(self, job_group: str) -> float:
        stages = self._stages(job_group)
        tasks = sum(stage.numTasks for stage in stages)
        return sum(stage.numCompletedTasks for stage in stages) / tasks if tasks else 0.0

    def _stages(self, job_group: str) -> list[SparkStageInfo]:
        tracker = self._spark.sparkContext.statusTracker()
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(job_group)]
        stages = [tracker.getStageInfo(stage) for job in jobs if job for stage in job.stageIds]
        return [stage for stage in stages if stage]

    def prepare(self) -> None:
        """Begins to put the stream together that follows, which takes a while, beside whatever comes first."""
        self._following = self._following or self._threads.submit(self._prepare)

    def follow(self, *, anew: bool = False) -> None:
        """Starts the stream in Real-Time Mode, if it is not running; `anew` where the plan has changed meanwhile."""
        if self._stream and self._stream.isActive:
            return
        if not self._checkpoints.has_batch(self._name):
            # Spark refuses to begin where one that broke in its first batch has left something, as on a full disk.
            self.forget()
        prepared, self._following = self._following, None
        self._stream = (prepared.result() if prepared and not anew else self._prepare()).start()

    def is_following(self) -> bool:
        """Whether the stream runs as far as its tasks: what comes now is answered."""
        if not self._stream or not self._stream.isActive:
            return False
        stages = self._stages(str(self._stream.runId))
        # Those of a checkpoint ago have ended.
        return bool(stages) and all(s.numActiveTasks + s.numCompletedTasks >= s.numTasks for s in stages)

    def repair(self, end: Offsets, asking: tuple[int, int], *, overtaken: Offsets | None) -> None:
        """Writes the rows that the records between these offsets of the repairs topic asked for, as of `end`.

        `overtaken` are the ends of a repair that perhaps wrote rows over newer ones.
        """
        self._in_group()
        history.repair(self._spark, self._plan(), end, asking, overtaken=overtaken)

    def failure(self) -> str:
        """Why the build or the stream has ended with an error; empty while it has not."""
        if self._building and self._building.done() and (error := self._building.exception()):
            return f"building from the history failed: {reason(error)}"
        stopped = self._stream if self._stream and not self._stream.isActive else None
        if not stopped or not (failed := stopped.exception()):
            return ""
        why = reason(failed)
        cause = self._cause(str(stopped.runId)) if _CONSEQUENCE in why else ""
        return f"the stream failed: {cause or why}"

    def _cause(self, job_group: str) -> str:
        """What the first task has failed of, where Spark names another that failed because of it; empty if unknown."""
        deadline = time.monotonic() + _CAUSE_S
        store = self._spark.sparkContext._jsc.sc().statusStore()
        while time.monotonic() < deadline:
            for stage in self._stages(job_group):
                tasks = store.taskList(stage.stageId, stage.currentAttemptId, _MOST_TASKS)
                errors = [tasks.apply(number).errorMessage() for number in range(tasks.size())]
                for said in (str(error.get()) for error in errors if error.isDefined()):
                    if _CONSEQUENCE not in said and _KILLED not in said:
                        return said
            time.sleep(_LOOK_S)
        return ""

    def tombstones(self) -> int:
        """How many records without a value were skipped, as of the last checkpoint that this process has seen."""
        progress = self._stream.lastProgress if self._stream else None
        if progress and TOMBSTONES in progress.observedMetrics:
            count = progress.observedMetrics[TOMBSTONES]["count"]
            self._tombstones[progress.runId, progress.batchId] = count
        return sum(self._tombstones.values())

    def stop(self) -> None:
        """Stops everything; what the stream did since the last checkpoint is done again by the next `follow`."""
        with self._starting:
            self._stopped.set()
            if self._stream:
                self._stream.stop()
        self._spark.sparkContext.cancelJobGroup(self._job_group)
        self._stream = self._building = self._following = None

    @property
    def _job_group(self) -> str:
        return f"batch of {self._checkpoints.where(self._name)}"

    def _in_group(self) -> None:
        """What this thread asks of Spark from now on can be counted and cancelled."""
        self._spark.sparkContext.setJobGroup(self._job_group, "history", interruptOnCancel=True)

    def _prepare(self) -> DataStreamWriter:
        """Puts the stream together: thousands of calls to Java."""
        return following(self._spark, self._plan(), self._checkpoints.where(self._name), self._interval)

    def _build(self, plan: Plan, stopped: threading.Event) -> None:
        """Writes the rows of exactly the records that the stream remembers; empty topics have none."""
        self._in_group()
        remember = remembering(self._spark, plan, self._checkpoints.where(self._name))
        stream = self._start(remember, stopped)
        end = self._end_of(stream)
        if not end:
            return
        is_long = total(end) - total(plan.starting_offsets) > _SIDE_BY_SIDE
        if is_long:
            stream.stop()
        history.build(self._spark, plan, end)
        self._written.set()
        if is_long:
            # The offsets are on record: it does again just what it was stopped in.
            stream = self._start(remember, stopped)
        stream.awaitTermination()

    def _start(self, writer: DataStreamWriter, stopped: threading.Event) -> StreamingQuery:
        """Starts it, unless everything was stopped meanwhile."""
        with self._starting:
            if stopped.is_set():
                raise LiveboardError("stopped")
            self._stream = writer.start()
            return self._stream

    @staticmethod
    def _end_of(stream: StreamingQuery) -> Offsets | None:
        """The offsets up to which the stream reads, as soon as they are on record; None when it reads nothing."""
        log = stream._jsq.streamingQuery().offsetLog()
        while True:
            active = stream.isActive
            if (latest := log.getLatest()).isDefined():
                found: Offsets = json.loads(latest.get()._2().offsets().head().get().json())
                return found
            if not active:
                return None
            time.sleep(_LOOK_S)


def reason(error: BaseException) -> str:
    """What an error of Spark, Kafka or the disk says."""
    if isinstance(error, PySparkException):
        return whole(error)
    return str(error.java_exception) if isinstance(error, Py4JJavaError) else str(error)


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
    if "java.lang.OutOfMemoryError" in text:
        return _NO_MEMORY
    # What failed in a task comes as a text, with all its causes.
    causes = [line for line in text.split("\n") if line.startswith(_CAUSED_BY)]
    bottom = causes[-1].removeprefix(_CAUSED_BY).strip()[:_MAX_WORDS] if causes else ""
    said = " ".join(text.split())[:_MAX_WORDS]
    return said if bottom in said else f"{said} ({bottom})"


def _without_plan(error: Exception) -> str:
    return str(error).split("\n=== Streaming Query ===")[0]
