"""Where the measures play: a broker, Spark sessions, and boards at work on them."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import arrivals
import psutil
from processes import in_process
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from liveboard.config import Board, SparkSettings, default_board
from liveboard.contract.names import generation_id
from liveboard.contract.tables import table_columns
from liveboard.errors import LiveboardError
from liveboard.kafka.admin import Admin, total
from liveboard.pipeline import session
from liveboard.pipeline.generation import Generation, one_line
from liveboard.pipeline.queries import Plan, prepare

PATIENCE_S = 300.0
INTERVAL = "5 minutes"
_POLL_S = 0.02

# Plain dicts: a board goes to other processes.
WHOLE = Board(sources=dict(default_board().sources), joins=dict(default_board().joins))
LEFT = replace(WHOLE, joins={"final_ui": WHOLE.joins["final_ui"]})
INNER = replace(WHOLE, joins={"final_ui": replace(WHOLE.joins["final_ui"], how="inner")})
ASOF = replace(WHOLE, joins={"user_account": WHOLE.joins["user_account"]})


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """How much is measured, and how long."""

    users: int = 100_000
    accounts: int = 1_000_000
    latency_users: int = 10_000
    latency_s: int = 120
    latency_warm_up_s: int = 15
    latency_checkpoint_s: int = 120
    follow_warm_up: int = 200_000
    hot_rows: int = 50_000
    hot_events: int = 10_000
    hot_events_unsalted: int = 200
    hot_patience_s: int = 60
    idle_s: int = 20
    swaps: int = 5


QUICK = Sizes(
    users=1_000,
    accounts=10_000,
    latency_users=100,
    latency_s=12,
    latency_warm_up_s=2,
    latency_checkpoint_s=5,
    follow_warm_up=1_000,
    hot_rows=2_000,
    hot_events=1_000,
    hot_events_unsalted=50,
    hot_patience_s=30,
    idle_s=2,
    swaps=1,
)


@dataclass(frozen=True)
class Stage:
    """The broker that all measures share, and a directory for what they leave."""

    bootstrap: str
    directory: Path
    sizes: Sizes


@contextmanager
def sparking(stage: Stage, java_options: str = "") -> Iterator[SparkSession]:
    """A Spark session of this process."""
    directory = Path(tempfile.mkdtemp(prefix="spark-", dir=stage.directory))
    conf = {"spark.driver.extraJavaOptions": java_options} if java_options else {}
    spark = session.create(SparkSettings(conf=conf), directory)
    try:
        yield spark
    finally:
        spark.stop()


class Run:
    """A board at work: from its topics' beginning to changelogs of its own."""

    def __init__(self, stage: Stage, spark: SparkSession, board: Board) -> None:
        self._stage = stage
        self._spark = spark
        self._admin = Admin({"bootstrap.servers": stage.bootstrap})
        topics = self._admin.require(source.topic for source in board.sources.values())
        self.plan = Plan(
            generation_id(time.time_ns()),
            board,
            self._admin.offsets(topics, "earliest"),
            {"bootstrap.servers": stage.bootstrap},
        )
        self._changelogs = [self.plan.changelog(table) for table in table_columns(board)]
        self._admin.create_changelogs(self._changelogs)
        self.checkpoint = stage.directory / self.plan.generation
        self.checkpoint.mkdir()

    def build_join(self) -> None:
        """Builds the joined tables from the history, alone."""
        query = prepare(self._spark, self.plan, self.checkpoint, "join", {"availableNow": True}).start()
        if not query.awaitTermination(int(PATIENCE_S)):
            query.stop()
            raise LiveboardError(f"gave up after {PATIENCE_S:.0f} s of waiting for the join to be built")

    @contextmanager
    def following_join(self) -> Iterator[StreamingQuery]:
        """The joins alone in Real-Time Mode."""
        query = prepare(self._spark, self.plan, self.checkpoint, "join", {"realTime": INTERVAL}).start()
        try:
            yield query
        finally:
            query.stop()

    def build(self, interval: str = INTERVAL) -> Generation:
        """Builds all tables from the history; the generation can then follow."""
        generation = Generation(self._spark, lambda: self.plan, self.checkpoint, interval)
        deadline = time.monotonic() + PATIENCE_S
        generation.build()
        while not generation.is_built():
            if time.monotonic() > deadline:
                generation.stop()
                raise LiveboardError(f"gave up after {PATIENCE_S:.0f} s of waiting for the board to be built")
            time.sleep(_POLL_S)
        return generation

    def end(self, table: str) -> int:
        """The end offset of the table's changelog."""
        return total(self._admin.offsets({self.plan.changelog(table): 1}, "latest"))

    def await_end(self, table: str, end: int, timeout_s: float, query: StreamingQuery) -> tuple[int, int]:
        """The changelog's end offset, as soon as it is `end` or else at the timeout, and the time then."""
        deadline = time.monotonic() + timeout_s
        while (found := self.end(table)) < end and time.monotonic() < deadline:
            check_alive(query)
            time.sleep(_POLL_S)
        return found, time.time_ns()

    def expect_rows(self, rows: Mapping[str, int], since: Mapping[str, int] | None = None) -> None:
        """Refuses to go on unless each changelog has exactly that many different rows."""
        for table, expected in rows.items():
            first, end = (since or {}).get(table, 0), self.end(table)
            topic = self.plan.changelog(table)
            found = 0
            if end > first:
                counting = (arrivals.distinct_keys, self._stage.bootstrap, topic, first, end, PATIENCE_S)
                found = in_process(f"a count of {table}", PATIENCE_S, *counting)
            if found != expected:
                raise LiveboardError(f"{table}: expected {expected} rows, found {found} in {end - first} records")

    def close(self) -> None:
        """Deletes the changelogs and the checkpoint."""
        self._admin.delete(self._changelogs)
        shutil.rmtree(self.checkpoint)


def fresh_topics(stage: Stage, board: Board) -> Board:
    """The same board on new, empty topics."""
    suffix = time.time_ns()
    sources = {name: replace(s, topic=f"{s.topic}-{suffix}") for name, s in board.sources.items()}
    Admin({"bootstrap.servers": stage.bootstrap}).create(source.topic for source in sources.values())
    return replace(board, sources=sources)


def check_alive(query: StreamingQuery) -> None:
    """Raises when the query has ended."""
    if not query.isActive:
        error = query.exception()
        raise LiveboardError(f"the query has ended: {one_line(error) if error else 'without an error'}")


def driver_processes() -> list[psutil.Process]:
    """This process and its Java: the whole driver."""
    here = psutil.Process()
    return [here, *(child for child in here.children() if child.name() == "java")]
