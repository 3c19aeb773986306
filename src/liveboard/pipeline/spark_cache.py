"""Keeps what Java learns in a run of the default board: every later start takes half the time."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

from confluent_kafka import Producer

from liveboard.config import SparkSettings, default_board
from liveboard.contract.errors import LiveboardError
from liveboard.contract.names import Names
from liveboard.contract.tables import table_columns
from liveboard.install import java, libraries
from liveboard.kafka.admin import Admin, total
from liveboard.kafka.broker import Broker
from liveboard.pipeline import session
from liveboard.pipeline.checkpoints import Checkpoints, local_address
from liveboard.pipeline.generation import Generation
from liveboard.pipeline.plan import Plan

_TIMEOUT_S = 240.0
_POLL_S = 0.2


def make() -> None:
    """Runs the default board on a broker of its own, in another process, and keeps what it loaded."""
    cache = libraries.cache("spark")
    work = cache.with_name("spark-cache")
    shutil.rmtree(work, ignore_errors=True)
    try:
        command = [sys.executable, "-m", __name__, str(work)]
        subprocess.run(command, check=True, timeout=_TIMEOUT_S, capture_output=True, stdin=subprocess.DEVNULL)
        (work / "spark.aot").rename(cache)
    except (OSError, subprocess.SubprocessError) as error:
        said = (getattr(error, "stderr", None) or b"").decode(errors="replace").strip().splitlines()
        why = said[-1] if said else error
        raise LiveboardError(f"what Java learnt of Spark could not be kept in {cache}: {why}") from error
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _run(work: Path) -> None:
    board = default_board()
    topics = [source.topic for source in board.sources.values()]
    names = Names()
    changelogs = [names.changelog("g1", table) for table in table_columns(board)]
    with Broker(work / "broker") as broker:
        client = {"bootstrap.servers": broker.bootstrap_servers}
        admin = Admin(client)
        admin.create(topics)
        admin.create_generation(names, "g1", table_columns(board))
        offsets = admin.offsets(admin.require(topics), "earliest")
        conf = {"spark.driver.extraJavaOptions": " ".join(map(shlex.quote, java.caching(work / "spark.aot")))}
        spark = session.create(SparkSettings(conf=conf), work / "spark")
        plan = Plan(names, "g1", board, offsets, client)
        generation = Generation(spark, lambda: plan, "g1", Checkpoints(spark, local_address(work)), "5 minutes")
        _produce(client, topics)
        generation.build()
        while not generation.is_built():
            time.sleep(_POLL_S)
        built = _written(admin, changelogs)
        generation.follow()
        _produce(client, topics)
        deadline = time.monotonic() + _TIMEOUT_S
        while _written(admin, changelogs) < 2 * built and time.monotonic() < deadline:
            time.sleep(_POLL_S)
        generation.stop()
        session.end(spark)


def _produce(client: dict[str, str], topics: list[str]) -> None:
    producer = Producer({**client, "log_level": 0})
    for topic in topics:
        for value in (b'{"userId":"u","name":"n","age":1,"balance":1}', b'{"userId":1}'):
            producer.produce(topic, value)
    producer.flush()


def _written(admin: Admin, changelogs: list[str]) -> int:
    return total(admin.offsets(admin.require(changelogs), "latest"))


if __name__ == "__main__":
    _run(Path(sys.argv[1]))
