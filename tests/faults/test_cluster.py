"""B11, B24, B35: what runs past one machine loses one part after the other under load, and no table is wrong."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest
from clustered import Clustered
from harness import emptied, until
from objects import SECRET
from swapping import wiring

from liveboard.contract.status import Phase

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1800)]

RATE = 1_000
# Of that load before each fault, and as many from then on; later it is less.
SECONDS = 3.0
CONF = {
    "spark.executor.extraJavaOptions": "-XX:+UseSerialGC",
}


def test_b11_b24_b35_a_cluster_loses_workers_master_driver_and_a_server_under_load(kafka: str, tmp_path: Path) -> None:
    with emptied(kafka), ExitStack() as parts:
        running = Clustered(kafka, tmp_path, parts, CONF)
        assert "joins are computed in " in running.owner.pipeline.said()
        # Of 16 slots this board has 7. One over these topics would need 8 + 2 beside them, and repairs 2.
        running.owner.admin.create(wiring(1).topics.values(), partitions=4)
        running.owner.ask(wiring(1))
        running.owner.wait_for(lambda status: "expected at least 19 task slots" in status.message)
        assert running.owner.wait_until_live(wiring(0)) == running.live
        running.ask_for_a_repair()
        for fault in (running.lose_the_master, running.get_a_master, running.lose_a_worker):
            _under_load(running, fault)
        # What the worker had no part in went on for a moment.
        until(lambda: Phase.RESTARTING in [status.phase for status in running.owner.history()], "a restart")
        # The master that was started again knew whose executors these were, and gave the new worker's as well.
        assert list(tmp_path.glob("worker4/work/app-*-0000/*/stderr"))
        for process in running.owner.pipeline.processes():
            assert SECRET not in " ".join(process.cmdline())
        for fault in (running.lose_the_driver, running.lose_a_server):
            _under_load(running, fault)
        running.servers[0].start()
        running.expect_exact()
        assert "building" not in running.owner.pipeline.said()
        for place in running.pipelines:
            assert not any(SECRET in log.read_text(errors="replace") for log in place.rglob("*.log"))
        # What the cluster ran on had no part in what was kept: all of it is in the bucket.
        assert not list(tmp_path.glob("*/storage/pipeline/g*"))
        running.owner.pipeline.stop()


def _under_load(running: Clustered, fault: Callable[[], None]) -> None:
    """Returns when viewers see what came after the fault."""
    with running.load(RATE) as load:
        until(lambda: load.produced >= SECONDS * RATE, "the load")
        load.ease(SECONDS)
        before = load.produced
        fault()
        until(lambda: load.produced >= before + SECONDS * RATE, "as much of it after the fault")
        running.expect_followed()
