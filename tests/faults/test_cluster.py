"""B11, B35: a Spark cluster with checkpoints in S3 loses a worker, then its driver, and no table is wrong."""

from __future__ import annotations

from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from harness import QUICK_SPARK, emptied
from objects import SECRET, bucket
from process import spark_conf
from standalone import cluster, kill
from swapping import Swapping, wiring

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1800)]

RATE = 50
CONF = {
    **QUICK_SPARK,
    "spark.driver.host": "127.0.0.1",
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": "-XX:+UseSerialGC",
}


def test_b35_a_cluster_loses_a_worker_and_its_driver_under_load(kafka: str, tmp_path: Path) -> None:
    with emptied(kafka), ExitStack() as parts:
        running, workers = parts.enter_context(cluster(tmp_path, workers=2))
        environment = {
            **parts.enter_context(bucket()),
            "LIVEBOARD_SPARK_MASTER": running.address,
            "LIVEBOARD_SPARK_CONF": spark_conf(CONF),
        }
        first, second = (
            parts.enter_context(closing(Swapping(kafka, tmp_path / name, **environment)))
            for name in ("first", "second")
        )
        for name in ("first", "second"):
            (tmp_path / name).mkdir()
        # Enough for a build, which runs on the cluster too.
        first.fill(0, 6_000)
        first.start()
        live = first.wait_until_live(wiring(0))
        assert "joins are computed in " in first.pipeline.said()
        second.start("--standby")
        second.pipeline.wait_for("standing by: ")
        with first.load(0, RATE):
            kill(workers[0])
            first.wait_for(lambda status: status.phase == "restarting")
            first.wait_until_live(wiring(0))
            for process in first.pipeline.processes():
                assert SECRET not in " ".join(process.cmdline())
            first.pipeline.kill("python")
            second.pipeline.wait_for(f"{live} is live")
        second.expect_oracle(live)
        assert "building" not in second.pipeline.said()
        for name in ("first", "second"):
            logs = (tmp_path / name).rglob("*.log")
            assert not any(SECRET in log.read_text(errors="replace") for log in logs)
        # What the cluster ran on had no part in what was kept: all of it is in the bucket.
        assert not list(tmp_path.glob("*/storage/pipeline/g*"))
        second.pipeline.stop()
