"""B11, B33, B40: crashes, stops and restarts of Spark and of the broker change nothing in any table.

One board goes through all of them, since every start of a pipeline takes its time; each test also runs alone.
"""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from random import Random

import boards
import pytest
from boards import FIRST_MS
from harness import Bench, Event, until
from ports import closed_port
from process import Pipeline

from liveboard.contract.board import History
from liveboard.contract.errors import LiveboardError
from liveboard.contract.status import decode_status
from liveboard.kafka.broker import Broker

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1200)]

# Every kind of join with next to nothing remembered of a key, so that there are repairs, and one without them.
MEMORIES: dict[str, History] = {"left_join": 2, "inner_join": 1, "asof_join": 2, "other_left": 100}
BOARD = replace(
    boards.EVERY_JOIN,
    joins={name: replace(boards.EVERY_JOIN.joins[name], history=history) for name, history in MEMORIES.items()},
    aggregates={name: boards.EVERY_JOIN.aggregates[name] for name in ("by_type", "of_age", "lately")},
)


class Load:
    """Events at a steady pace, on a thread of its own, until stopped.

    So many keys that few of their records ask for a repair: Spark would do nothing else.
    """

    def __init__(self, bench: Bench, seed: str) -> None:
        self._bench, self._random = bench, Random(seed)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._stopping.wait(0.1):
            self._bench.produce(self._event() for _ in range(3))

    def _event(self) -> Event:
        value = {
            "userId": f"u{self._random.randrange(5_000)}",
            "name": "n",
            "balance": self._random.randrange(9),
        }
        source = "users" if self._random.random() < 0.1 else "accounts"
        document = b"broken" if self._random.random() < 0.01 else json.dumps(value).encode()
        return Event(source, document, FIRST_MS + self._random.randrange(5_000), self._random.randrange(2))

    def close(self) -> None:
        self._stopping.set()
        self._thread.join()


@dataclass(frozen=True)
class Victims:
    """A board, what runs it, and the broker that it is on."""

    broker: Broker
    bench: Bench
    pipeline: Pipeline


@pytest.fixture(scope="module")
def victims(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Victims]:
    directory = tmp_path_factory.mktemp("crashes")
    with ExitStack() as stack:
        broker = stack.enter_context(Broker(directory / "kafka", closed_port()))
        bench = stack.enter_context(closing(Bench(broker.bootstrap_servers, BOARD, "g1")))
        bench.admin.create((source.topic for source in BOARD.sources.values()), partitions=2)
        pipeline = stack.enter_context(
            closing(Pipeline(broker.bootstrap_servers, BOARD, directory, LIVEBOARD_SPARK_CHECKPOINT_INTERVAL="10 s"))
        )
        yield Victims(broker, bench, pipeline)


def test_kill_9_at_random_moments_under_load(victims: Victims) -> None:
    random = Random(9)
    bench, pipeline = victims.bench, victims.pipeline
    with closing(Load(bench, "kills")):
        for what in ("java", "python"):
            time.sleep(random.uniform(0, 0.5))
            if random.random() < 0.7:
                pipeline.wait_until_live()
                bench.let_pass(random.randrange(200))
            pipeline.kill(what)
            pipeline.start()
        pipeline.wait_until_live()
    bench.expect_oracle()


def test_b33_kill_9_while_keys_wait_for_repairs(victims: Victims) -> None:
    random = Random(33)
    bench, pipeline = victims.bench, victims.pipeline

    def late_events() -> Iterator[Event]:
        for number in range(200):
            value = {"userId": f"u{random.randrange(5)}", "name": f"n{number}", "balance": number}
            source = random.choice(["users", "accounts"])
            yield Event(source, json.dumps(value).encode(), FIRST_MS + random.randrange(1_000), random.randrange(2))

    def waiting() -> bool:
        messages = bench.topics.messages(bench.names.status)
        return decode_status(messages[-1].value()).generations["g1"].repairs is not None

    for what in ("java", "python"):
        pipeline.wait_until_live()
        bench.produce(late_events())
        until(waiting, "keys that wait for a repair")
        pipeline.kill(what)
        pipeline.start()
    bench.expect_oracle()
    until(lambda: not waiting(), "the end of all repairs")
    bench.expect_oracle()


def test_the_broker_restarted_under_it(victims: Victims) -> None:
    broker, bench = victims.broker, victims.bench
    victims.pipeline.wait_until_live()
    with closing(Load(bench, "broker")):
        bench.let_pass(100)
        broker.stop()
        broker.start()
        os.kill(broker.pid or 0, signal.SIGKILL)
        with pytest.raises(LiveboardError, match="killed by SIGKILL"):
            broker.wait()
        broker.start()
        bench.let_pass(100)
    bench.expect_oracle()


def test_a_clean_stop_and_restart(victims: Victims) -> None:
    bench, pipeline = victims.bench, victims.pipeline
    with closing(Load(bench, "stops")):
        pipeline.wait_until_live()
        pipeline.stop()
        pipeline.start()
        pipeline.wait_until_live()
    bench.expect_oracle()
    pipeline.stop()
    assert "building" not in pipeline.said()
    place = pipeline.storage / "pipeline"
    left = {path.name for path in place.iterdir()}
    assert left == {"g1", "id", "lock", "spark.log", "spark.out", "spark-log4j2.properties", "tmp", "trusted.p12"}
    assert list((place / "tmp").iterdir()) == []
