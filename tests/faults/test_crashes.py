"""B11, B40: crashes, stops and restarts of Spark and of the broker change nothing in any table."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from random import Random

import boards
import pytest
from boards import FIRST_MS, with_suffix
from harness import Bench, Event, emptied, until
from ports import closed_port
from process import Pipeline

from liveboard.contract.errors import LiveboardError
from liveboard.contract.names import Names
from liveboard.contract.status import decode_status
from liveboard.kafka.broker import Broker

NAMES = Names()

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1200)]


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
    """Every join; with a parameter, they remember that many records of a key."""
    joins = {
        name: replace(join, history=getattr(request, "param", 100)) for name, join in boards.EVERY_JOIN.joins.items()
    }
    board = with_suffix(replace(boards.EVERY_JOIN, joins=joins), request.node.originalname)
    with emptied(kafka), closing(Bench(kafka, board, "g1")) as bench:
        bench.admin.create((source.topic for source in board.sources.values()), partitions=2)
        yield bench


@pytest.mark.parametrize("bench", [100, 2], indirect=True, ids=["100 records", "2 records"])
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


@pytest.mark.parametrize("bench", [1], indirect=True, ids=["1 record"])
def test_b33_kill_9_while_keys_wait_for_repairs(kafka: str, bench: Bench, tmp_path: Path) -> None:
    random = Random(33)

    def late_events() -> Iterator[Event]:
        for number in range(200):
            value = {"userId": f"u{random.randrange(5)}", "name": f"n{number}", "balance": number}
            source = random.choice(["users", "accounts"])
            yield Event(source, json.dumps(value).encode(), FIRST_MS + random.randrange(1_000), random.randrange(2))

    def waiting() -> bool:
        messages = bench.topics.messages(NAMES.status)
        return decode_status(messages[-1].value()).generations["g1"].repairs is not None

    with closing(Pipeline(kafka, bench.board, tmp_path)) as pipeline:
        for what in ("java", "python"):
            pipeline.wait_until_live()
            bench.produce(late_events())
            until(waiting, "keys that wait for a repair")
            pipeline.kill(what)
            pipeline.start()
        bench.expect_oracle()
        until(lambda: not waiting(), "the end of all repairs")
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
    assert left == {"g1", "id", "lock", "spark.log", "spark.out", "spark-log4j2.properties", "tmp", "trusted.p12"}
    assert list((tmp_path / "storage" / "pipeline" / "tmp").iterdir()) == []


def test_the_broker_restarted_under_it(tmp_path: Path) -> None:
    with ExitStack() as stack:
        port = closed_port()
        broker = stack.enter_context(Broker(tmp_path / "kafka", port))
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
