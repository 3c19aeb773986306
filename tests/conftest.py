"""One broker and one Spark for all tests that need them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from pyspark.sql import SparkSession

from liveboard.config import SparkSettings
from liveboard.kafka.broker import Broker
from liveboard.pipeline import session

# Reproducible, and without shrinking: an example here takes seconds, and the first that fails says enough.
settings.register_profile(
    "liveboard",
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.generate],
)
settings.load_profile("liveboard")


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a running broker."""
    with Broker(tmp_path_factory.mktemp("kafka")) as broker:
        yield broker.bootstrap_servers


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A running Spark session."""
    running = session.create(SparkSettings(), tmp_path_factory.mktemp("spark"))
    yield running
    session.end(running)


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """An empty directory for a generation's checkpoints."""
    return tmp_path / "checkpoint"
