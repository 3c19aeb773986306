"""Boards at work in this process: Spark sessions, builds and what follows them."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import arrivals
import psutil
from processes import await_until, in_process
from pyspark.sql import SparkSession
from stage import PATIENCE_S, Stage

from liveboard.config import SparkSettings, default_board
from liveboard.contract.board import Board
from liveboard.contract.errors import LiveboardError
from liveboard.contract.names import Names, generation_id
from liveboard.contract.tables import table_columns
from liveboard.kafka.admin import total
from liveboard.pipeline import session
from liveboard.pipeline.checkpoints import Checkpoints, local_address
from liveboard.pipeline.generation import Generation
from liveboard.pipeline.plan import Plan

INTERVAL = "5 minutes"
_BUILD_S = 4 * PATIENCE_S
_POLL_S = 0.02

# Plain dicts: a board goes to other processes.
JOINED = Board(sources=dict(default_board().sources), joins=dict(default_board().joins))
BY_TYPE = replace(default_board().aggregates["by_type"], measures=dict(default_board().aggregates["by_type"].measures))
WHOLE = replace(JOINED, aggregates={"by_type": BY_TYPE})
LEFT = replace(JOINED, joins={"final_ui": JOINED.joins["final_ui"]})
INNER = replace(JOINED, joins={"final_ui": replace(JOINED.joins["final_ui"], how="inner")})
ASOF = replace(JOINED, joins={"user_account": JOINED.joins["user_account"]})


def over(board: Board, users: str, accounts: str) -> Board:
    """The same board on other topics."""
    topics = {"users": users, "accounts": accounts}
    return replace(board, sources={name: replace(s, topic=topics[name]) for name, s in board.sources.items()})


@contextmanager
def sparking(
    stage: Stage,
    java_options: str = "",
    master: str = "local",
    conf: Mapping[str, str] = MappingProxyType({}),
    board: Board | None = None,
) -> Iterator[SparkSession]:
    """A Spark session of this process, for a board."""
    directory = Path(tempfile.mkdtemp(prefix="spark-", dir=stage.directory))
    options = {"spark.driver.extraJavaOptions": java_options} if java_options else {}
    spark = session.create(SparkSettings(master=master, conf={**options, **conf}), directory, board)
    try:
        yield spark
    finally:
        spark.stop()


class Run:
    """A board at work: from its topics' beginning to changelogs of its own."""

    def __init__(self, stage: Stage, spark: SparkSession, board: Board, checkpoints: str = "") -> None:
        """`checkpoints` is where they are kept, if not on this machine."""
        self._stage = stage
        self._spark = spark
        self._admin = stage.admin
        topics = self._admin.require(source.topic for source in board.sources.values())
        self.plan = Plan(
            Names(board.name),
            generation_id(time.time_ns()),
            board,
            self._admin.offsets(topics, "earliest"),
            stage.client_config,
            cores=session.cores(spark),
        )
        self._admin.create_generation(self.plan.names, self.plan.generation, table_columns(board))
        self.checkpoint = stage.directory / self.plan.generation
        self._checkpoints = Checkpoints(spark, checkpoints or local_address(stage.directory))

    def build(self, interval: str = INTERVAL) -> Generation:
        """Builds all tables from the history; the generation can then follow."""
        generation = Generation(self._spark, lambda: self.plan, self.plan.generation, self._checkpoints, interval)
        generation.build()
        await_until(generation.is_built, "the board to be built", _BUILD_S)
        return generation

    def end(self, table: str) -> int:
        """The end offset of the table's changelog."""
        return total(self._admin.offsets({self.plan.changelog(table): 1}, "latest"))

    def await_end(self, table: str, end: int, timeout_s: float, generation: Generation) -> tuple[int, int]:
        """The changelog's end offset, as soon as it is `end` or else at the timeout, and the time then."""
        deadline = time.monotonic() + timeout_s
        while (found := self.end(table)) < end and time.monotonic() < deadline:
            check(generation)
            time.sleep(_POLL_S)
        return found, time.time_ns()

    def expect_rows(self, rows: Mapping[str, int]) -> None:
        """Refuses to go on unless each changelog has exactly that many different rows."""
        for table, expected in rows.items():
            topic, end = self.plan.changelog(table), self.end(table)
            found = 0
            if end:
                counting = (arrivals.distinct_keys, self._stage.bootstrap, topic, end, _BUILD_S)
                found = in_process(f"a count of {table}", _BUILD_S, *counting)
            if found != expected:
                raise LiveboardError(f"{table}: expected {expected} rows, found {found} in {end} records")

    def close(self) -> None:
        """Deletes the changelogs and the checkpoint."""
        self._admin.delete([*map(self.plan.changelog, table_columns(self.plan.board)), self.plan.repairs])
        self._checkpoints.remove(self.plan.generation)


@contextmanager
def following(generation: Generation) -> Iterator[Generation]:
    """What was built follows its topics until the end."""
    try:
        generation.follow()
        yield generation
    finally:
        generation.stop()


def check(generation: Generation) -> None:
    """Raises when the generation has failed."""
    if why := generation.failure():
        raise LiveboardError(why)


def driver_processes() -> list[psutil.Process]:
    """This process and its Java: the whole driver."""
    here = psutil.Process()
    return [here, *(child for child in here.children() if child.name() == "java")]
