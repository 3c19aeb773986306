"""B11: crashes, stops and restarts of Spark and of the broker change nothing in any table."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from random import Random

import boards
import pytest
from boards import FIRST_MS, with_suffix
from harness import Bench, Event
from process import Pipeline

from liveboard.errors import LiveboardError
from liveboard.kafka.broker import Broker

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]


class Load:
    """Events of a few keys at a steady pace, on a thread of its own, until stopped."""

    def __init__(self, bench: Bench, seed: str) -> None:
        self._bench, self._random = bench, Random(seed)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._stopping.wait(0.03):
            self._bench.produce(self._event() for _ in range(3))

    def _event(self) -> Event:
        value = {
            "userId": f"u{self._random.randrange(1_000)}",
            "name": "n",
            "balance": self._random.randrange(9),
        }
        source = "users" if self._random.random() < 0.1 else "accounts"
        document = b"broken" if self._random.random() < 0.01 else json.dumps(value).encode()
        return Event(source, document, FIRST_MS + self._random.randrange(5_000), self._random.randrange(2))

    def close(self) -> None:
        self._stopping.set()
        self._thread.join()


@pytest.fixture
def bench(kafka: str, request: pytest.FixtureRequest) -> Iterator[Bench]:
    board = with_suffix(boards.EVERY_JOIN, request.node.name)
    with closing(Bench(kafka, board, "g1")) as bench:
        bench.admin.delete(topic for topic in bench.admin.partitions() if topic.startswith("liveboard."))
        bench.admin.create((source.topic for source in board.sources.values()), partitions=2)
        yield bench


def test_kill_9_at_random_moments_under_load(kafka: str, bench: Bench, tmp_path: Path) -> None:
    random = Random(9)
    with closing(Pipeline(kafka, bench.board, tmp_path)) as pipeline:
        with closing(Load(bench, "kills")):
            for what in ("java", "python", "java", "python", "java"):
                time.sleep(random.uniform(0, 0.5))
                if random.random() < 0.7:
                    pipeline.wait_until_live()
                    bench.let_pass(random.randrange(800))
                pipeline.kill(what)
                pipeline.start()
            pipeline.wait_until_live()
        bench.expect_oracle()
        pipeline.stop()


def test_a_clean_stop_and_restart(kafka: str, bench: Bench, tmp_path: Path) -> None:
    with closing(Pipeline(kafka, bench.board, tmp_path)) as pipeline:
        with closing(Load(bench, "stops")):
            pipeline.wait_until_live()
            pipeline.stop()
            pipeline.start()
            pipeline.wait_until_live()
        bench.expect_oracle()
        pipeline.stop()
    assert "building" not in pipeline.said()
    left = {path.name for path in (tmp_path / "storage" / "pipeline").iterdir()}
    assert left == {"g1", "lock", "spark.log", "spark.out", "spark-log4j2.properties", "tmp"}
    assert list((tmp_path / "storage" / "pipeline" / "tmp").iterdir()) == []


def test_the_broker_restarted_under_it(tmp_path: Path) -> None:
    with ExitStack() as stack:
        broker = stack.enter_context(Broker(tmp_path / "kafka"))
        port = int(broker.bootstrap_servers.rsplit(":", 1)[1])
        bench = stack.enter_context(closing(Bench(broker.bootstrap_servers, boards.EVERY_JOIN, "g1")))
        bench.admin.create((source.topic for source in bench.board.sources.values()), partitions=2)
        pipeline = stack.enter_context(closing(Pipeline(broker.bootstrap_servers, bench.board, tmp_path)))
        pipeline.wait_until_live()
        with closing(Load(bench, "broker")):
            bench.let_pass(100)
            broker.stop()
            with Broker(tmp_path / "kafka", port) as again:
                os.kill(again.pid or 0, signal.SIGKILL)
                with pytest.raises(LiveboardError, match="killed by SIGKILL"):
                    again.wait()
            stack.enter_context(Broker(tmp_path / "kafka", port))
            bench.let_pass(100)
        bench.expect_oracle()
        pipeline.stop()
