"""A board past one machine, in the hands of a test or a measure: a Spark cluster, checkpoints in S3, a standby, and two
servers behind a load balancer, under load.

What can happen to it is told by name; it is healed when `expect_followed` returns.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack, closing
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import orjson
from boards import FIRST_MS
from harness import Event, until
from live import KEY
from objects import bucket
from process import board_toml, spark_conf
from replicas import Replica, balanced
from standalone import cluster, kill
from swapping import Swapping, wiring
from system import shown_rows, shows

import liveboard
from liveboard.client import SyncSubscription

_CONF = {"spark.driver.host": "127.0.0.1", "spark.executor.memory": "512m"}
# So many that a key has few records: what is tested is the cluster, not long keys.
_KEYS = 50_000
_HISTORY = 6_000
_PROBE = "probe"


class Clustered:
    """All of it at work, on topics that have a history. The parts end with their stack, and so does the load."""

    def __init__(
        self, bootstrap: str, directory: Path, parts: ExitStack, load: ExitStack, rate: int, conf: Mapping[str, str]
    ) -> None:
        """`conf` is Spark's, beside what the cluster asks for."""
        self.cluster, self.workers = parts.enter_context(cluster(directory, workers=2))
        environment = {
            **parts.enter_context(bucket()),
            "LIVEBOARD_SPARK_MASTER": self.cluster.address,
            "LIVEBOARD_SPARK_CHECKPOINT_INTERVAL": "15 s",
            "LIVEBOARD_SPARK_CONF": spark_conf({**_CONF, **conf}),
        }
        self.pipelines = [directory / name for name in ("first", "second")]
        for place in self.pipelines:
            place.mkdir()
        self.owner, self.standby = (
            parts.enter_context(closing(Swapping(bootstrap, place, **environment))) for place in self.pipelines
        )
        # Enough for a build, which runs on the cluster too.
        self.owner.fill(0, _HISTORY)
        self.owner.start()
        self.live = self.owner.wait_until_live(wiring(0))
        self.standby.start("--standby")
        self.standby.pipeline.wait_for("standing by: ")
        board = board_toml(self.owner.board)
        self.servers = [Replica(bootstrap, directory, board) for _ in range(2)]
        for server in self.servers:
            server.start()
            parts.callback(server.kill)
        address = parts.enter_context(balanced(*self.servers))
        self._bench = parts.enter_context(closing(self.owner.bench(wiring(0), self.live)))
        self._numbers = count()
        self._viewers = [_viewer(address, parts) for _ in self.servers]
        until(
            lambda: {server.metric("liveboard_viewers") for server in self.servers} == {1.0}, "a viewer of each server"
        )
        load.enter_context(self.owner.load(0, rate, _KEYS))
        self.expect_followed()

    def expect_followed(self) -> None:
        """Waits until every viewer sees an event that is produced now."""
        key = f"{_PROBE}{next(self._numbers)}"
        self._bench.produce([Event("users", orjson.dumps({"userId": key}), FIRST_MS)])
        for viewer in self._viewers:
            until(partial(_sees, viewer, key), lambda: f"{key}; the owner said {self.owner.pipeline.said()[-3000:]}")

    def lose_a_worker(self) -> None:
        """kill -9 of the one that is there longest, and of its executor."""
        kill(self.workers.pop(0))

    def restart_the_master(self) -> None:
        """kill -9 of the master, then one that takes up its work, and a new worker that registers with it."""
        self.cluster.restart_master()
        self.workers.append(self.cluster.add_worker())

    def lose_the_driver(self) -> None:
        """kill -9 of the owner; returns when the standby is the owner."""
        self.owner.pipeline.kill("python")
        self.owner = self.standby
        self.owner.pipeline.wait_for(f"{self.live} is live")

    def lose_a_server(self) -> None:
        """kill -9 of the first one."""
        self.servers[0].kill()

    def expect_exact(self) -> None:
        """Waits until each server has what the oracle says, in every table. For the time after the load."""
        expected = self._bench.expected()
        sizes = {name: len(table) for name, table in expected.items()}
        for server in self.servers:
            with liveboard.connect(server.url, KEY) as client:
                until(partial(_has, client, sizes), f"{sizes}")
        self._bench.expect(expected)
        # As they are in the changelogs: sums of doubles depend on the order.
        written = {name: shown_rows(self._bench.table(name)) for name in expected}
        for server in self.servers:
            with liveboard.connect(server.url, KEY) as client:
                for name, rows in written.items():
                    until(partial(shows, client, name, rows), f"{name} to be right")


def _viewer(address: str, parts: ExitStack) -> SyncSubscription:
    client = parts.enter_context(liveboard.connect(address, KEY))
    return client.subscribe("final_ui", filter=[["userId", "starts with", _PROBE]])


def _sees(viewer: SyncSubscription, key: str) -> bool:
    update = viewer.update
    return bool(update and update.stale_since is None and any(row[0] == key for row in update.rows))


def _has(client: Any, sizes: dict[str, int]) -> bool:
    found = {table.name: table.rows for table in client.tables()}
    return all(found.get(name) == size for name, size in sizes.items())
