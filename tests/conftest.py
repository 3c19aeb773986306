"""One broker and one Spark for all tests of a worker that need them, and which worker runs which tests."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import spreading
from harness import QUICK_SPARK, code_generated
from hypothesis import HealthCheck, Phase, settings
from pyspark.sql import SparkSession
from secured import SecuredBroker

from liveboard.config import SparkSettings
from liveboard.kafka.admin import Admin
from liveboard.kafka.broker import Broker
from liveboard.pipeline import session

# A Java that runs for a minute does not get back what its second compiler takes: without it, two tests of crashes took
# 79 s of the processor instead of 130 s. Nor what the first one takes for code that runs a few hundred times. What it
# has compiled must fit, or it clears out its whole heap with it. Nor does it verify the code of jars that every run
# verifies: 7 % of the tests of joins. Every Java that a test starts hears of it, whoever starts it.
_QUICK = (
    "-XX:TieredStopAtLevel=1 -XX:CompileThresholdScaling=5 -XX:ReservedCodeCacheSize=240m"
    " -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
)
os.environ["JAVA_TOOL_OPTIONS"] = f"{os.environ.get('JAVA_TOOL_OPTIONS', '')} {_QUICK}".strip()

# Reproducible, and without shrinking: an example here takes seconds, and the first that fails says enough.
settings.register_profile(
    "liveboard",
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.generate],
)
settings.load_profile("liveboard")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Where there are workers, they begin with the longest tests."""
    if hasattr(config, "workerinput"):
        spreading.longest_first(items)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> spreading.Spreading:
    """Called by pytest-xdist, when it is asked for workers."""
    # It would begin with the files that have the most tests, which are the quickest.
    config.option.loadscopereorder = False
    return spreading.Spreading(config, log)


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a running broker."""
    with Broker(tmp_path_factory.mktemp("kafka")) as broker:
        yield broker.bootstrap_servers


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    """A running broker that asks who one is and what one may do."""
    with SecuredBroker(tmp_path_factory.mktemp("secured")) as running:
        running.grant_all(["users", "accounts"], "liveboard-control")
        Admin({"bootstrap.servers": running.bootstrap_servers}).create(["users", "accounts"], partitions=2)
        yield running


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A running Spark session."""
    running = session.create(SparkSettings(conf=QUICK_SPARK), tmp_path_factory.mktemp("spark"))
    yield running
    session.end(running)


@pytest.fixture
def generated_code(spark: SparkSession) -> Iterator[None]:
    """The code that Spark generates for queries, as users have it."""
    with code_generated(spark, True):
        yield


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """An empty directory for a generation's checkpoints."""
    return tmp_path / "checkpoint"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """Mounts a directory of a given size."""
    place = tmp_path / "disk"
    place.mkdir()

    def mount(size: str) -> Path:
        command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)]
        if subprocess.run(command, stderr=subprocess.DEVNULL).returncode != 0:
            pytest.skip("a disk of a given size needs the right to mount one")
        return place

    yield mount
    if place.is_mount():
        subprocess.run(["umount", str(place)], check=True)
