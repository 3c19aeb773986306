"""A board past one machine: everything twice, on a Spark cluster, with checkpoints in S3."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from objects import bucket
from paired import Paired
from process import spark_conf
from stage import Meter
from standalone import cluster, kill

# Long enough to see which processes are at work.
_LOOK_S = 1.0

_CONF = {
    "spark.driver.host": "127.0.0.1",
    "spark.executor.memory": "512m",
    # Executors need none.
    "spark.pyspark.python": "/no/python/here",
}


class Clustered(Paired):
    """Two workers at first, and a checkpoint every 15 s."""

    def __init__(self, bootstrap: str, directory: Path, parts: ExitStack, conf: Mapping[str, str]) -> None:
        """`conf` is Spark's, beside what the cluster asks for."""
        self.cluster, self.workers = parts.enter_context(cluster(directory, workers=2))
        environment = {
            **parts.enter_context(bucket()),
            "LIVEBOARD_SPARK_MASTER": self.cluster.address,
            "LIVEBOARD_SPARK_CHECKPOINT_INTERVAL": "15 s",
            "LIVEBOARD_SPARK_CONF": spark_conf({**_CONF, **conf}),
        }
        super().__init__(bootstrap, directory, parts, environment)

    def lose_the_master(self) -> None:
        """kill -9."""
        self.cluster.kill_master()

    def get_a_master(self) -> None:
        """One that takes up the work of the one before, and a third worker that registers with it."""
        self.cluster.start_master()
        self.workers.append(self.cluster.add_worker())

    def lose_a_worker(self) -> None:
        """kill -9 of one of the first two, and of its executor: the one that has more to do.

        The other one may have no task, and a third one may be busy with starting.
        """
        meters = [Meter(worker.children(recursive=True)) for worker in self.workers[:2]]
        time.sleep(_LOOK_S)
        used = [meter.used_s() for meter in meters]
        kill(self.workers.pop(used.index(max(used))))
