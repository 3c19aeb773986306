"""Following a board: its status, the tables of the live generation, and those of no generation."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator

import orjson
import pytest
from confluent_kafka import Producer

from liveboard.contract.names import Names
from liveboard.contract.status import STATUS_KEY, BoardStatus, Phase, status_row
from liveboard.kafka.admin import Admin
from liveboard.kafka.board import KeptStatus, follow
from liveboard.kafka.broker import Broker
from liveboard.kafka.reader import Change

NAMES = Names()

pytestmark = pytest.mark.integration
PATIENCE_S = 60.0
Batch = tuple[KeptStatus | None, list[Change]]


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A broker without a board."""
    with Broker(tmp_path_factory.mktemp("kafka")) as broker:
        yield broker.bootstrap_servers


def _write(bootstrap: str, topic: str, key: bytes, value: bytes) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce(topic, value, key)
    assert producer.flush(PATIENCE_S) == 0


def _until(batches: Iterator[Batch], done: Callable[[KeptStatus | None, list[Change]], object]) -> Batch:
    deadline = time.monotonic() + PATIENCE_S
    for batch in batches:
        if done(*batch):
            return batch
        assert time.monotonic() < deadline, "waited in vain"
    raise AssertionError


def test_b15_the_rows_are_those_of_the_generation_that_the_status_names(bootstrap: str) -> None:
    config = {"bootstrap.servers": bootstrap}
    one, two = (NAMES.changelog(generation, "users_ui") for generation in ("g1", "g2"))
    with contextlib.closing(follow(config, NAMES, ["users_ui", "control_raw", "orchestrator_status"])) as batches:
        assert next(batches) == (None, [])
        Admin(config).create_changelogs([NAMES.status, NAMES.verdicts, one, two])
        _write(bootstrap, one, b"0-0", b"[1]")
        _write(bootstrap, two, b"0-0", b"[2]")
        _write(bootstrap, NAMES.verdicts, b"0-0", b"[0]")
        assert [c.topic for c in _until(batches, lambda _, changes: changes)[1]] == [NAMES.verdicts]

        for live, phase in ((None, Phase.BUILDING), ("g1", Phase.LIVE), ("g2", Phase.LIVE)):
            status = BoardStatus(sources=("users",), live=live, phase=phase)
            _write(bootstrap, NAMES.status, STATUS_KEY, status.encode())
            kept, changes = _until(batches, lambda _, changes: any(c.topic == NAMES.status for c in changes))
            assert kept
            assert kept.status == status
            assert changes[-1].value == orjson.dumps(status_row(status))
            rows = [c for c in changes if c.topic in (one, two)]
            if live:
                rows = rows or _until(batches, lambda _, changes: any(c.topic in (one, two) for c in changes))[1]
                assert {(c.topic, c.value) for c in rows if c.topic in (one, two)} == {
                    (NAMES.changelog(live, "users_ui"), b"[1]" if live == "g1" else b"[2]")
                }
