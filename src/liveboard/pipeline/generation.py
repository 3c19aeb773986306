"""One generation at work: built from the topics' history, then following them for ever."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from liveboard.errors import LiveboardError
from liveboard.pipeline.queries import TOMBSTONES, Wiring, start

QUERIES = ("raw", "join")
_POLL_S = 0.1


class Generation:
    """Runs the two queries of one wiring over one checkpoint directory.

    `build` reads all that the topics held when it began, as one batch, and returns when the changelogs hold it.
    `follow` goes on from there, or from wherever a stop or crash left the checkpoint, record by record.
    """

    def __init__(self, spark: SparkSession, wiring: Wiring, checkpoint: Path, interval: str) -> None:
        self._spark = spark
        self._wiring = wiring
        self._checkpoint = checkpoint
        self._interval = interval
        self._queries: dict[str, StreamingQuery] = {}
        self._tombstones: dict[tuple[UUID, int], int] = {}

    @property
    def name(self) -> str:
        """The generation's id."""
        return self._wiring.generation

    @property
    def built(self) -> bool:
        """Whether an earlier build, maybe of an earlier process, was finished."""
        return self._built_mark.exists()

    def build(self, stopping: Callable[[], bool] = lambda: False) -> None:
        """Brings the changelogs up to the topics' ends of now. Returns early when `stopping` says so."""
        self._start({"availableNow": True})
        while any(query.isActive for query in self._queries.values()):
            if stopping():
                return self.stop()
            if self.failures():
                break
            time.sleep(_POLL_S)
        failures = self.failures()
        self.tombstones()
        self.stop()
        if failures:
            raise LiveboardError("; ".join(f"the {name} query failed: {why}" for name, why in failures.items()))
        self._built_mark.touch()

    def nothing_to_build(self) -> None:
        """Says that the topics hold nothing yet, so that `follow` may begin at once."""
        self._built_mark.touch()

    def follow(self) -> None:
        """Starts the queries that are not running, in Real-Time Mode."""
        self._start({"realTime": self._interval})

    def failures(self) -> dict[str, str]:
        """The queries that have ended with an error, and why, in one line each."""
        errors = {name: query.exception() for name, query in self._queries.items() if not query.isActive}
        return {name: one_line(error) for name, error in errors.items() if error is not None}

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

    @property
    def _built_mark(self) -> Path:
        return self._checkpoint / "built"

    def _start(self, trigger: dict[str, str | bool]) -> None:
        for name in QUERIES if self._wiring.board.joins else QUERIES[:1]:
            running = self._queries.get(name)
            if running is None or not running.isActive:
                self._queries[name] = start(self._spark, self._wiring, self._checkpoint, name, trigger)


def one_line(error: PySparkException) -> str:
    """The innermost useful sentence of a Spark error, without plan and stack."""
    text = str(error).split("\n=== Streaming Query ===")[0]
    return " ".join(text.split())[:500]
