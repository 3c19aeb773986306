"""Reading changelogs from a real broker: everything, or only the end."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from liveboard.contract.names import Names
from liveboard.kafka.admin import Admin
from liveboard.kafka.broker import Broker
from liveboard.kafka.reader import Change, ChangelogReader

NAMES = Names()

pytestmark = pytest.mark.integration
PATIENCE_S = 60.0


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A broker without generations."""
    with Broker(tmp_path_factory.mktemp("kafka")) as broker:
        yield broker.bootstrap_servers


def _write(bootstrap: str, topic: str, rows: dict[str, bytes | None]) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for key, value in rows.items():
        producer.produce(topic, value, key)
    assert producer.flush(PATIENCE_S) == 0


def _read(reader: ChangelogReader, count: int) -> list[Change]:
    found: list[Change] = []
    deadline = time.monotonic() + PATIENCE_S
    while len(found) < count:
        assert time.monotonic() < deadline, f"expected {count} changes, found {found}"
        found += reader.read()
    return found


def test_from_the_start_or_the_last_ones_and_what_comes_after(bootstrap: str) -> None:
    config = {"bootstrap.servers": bootstrap}
    topic = NAMES.changelog("g1", "many")
    Admin(config).create_changelogs([topic])
    _write(bootstrap, topic, {str(n): b"[%d]" % n for n in range(30_000)})
    now_ms = time.time() * 1000
    with ChangelogReader(config, [topic]) as everything, ChangelogReader(config, [topic], last=3) as end:
        found = _read(everything, 30_000)
        assert [change.value for change in found] == [b"[%d]" % n for n in range(30_000)]
        assert abs(found[-1].timestamp_ms - now_ms) < 60_000
        assert [change.key for change in _read(end, 3)] == [b"29997", b"29998", b"29999"]
        _write(bootstrap, topic, {"29999": None})
        for reader in (everything, end):
            assert [(change.key, change.value) for change in _read(reader, 1)] == [(b"29999", None)]


def test_a_short_topic_is_read_whole_when_more_are_asked_for(bootstrap: str) -> None:
    config = {"bootstrap.servers": bootstrap}
    topic = NAMES.changelog("g1", "few")
    Admin(config).create_changelogs([topic])
    _write(bootstrap, topic, {"a": b"[1]"})
    with ChangelogReader(config, [topic], last=10) as reader:
        assert [change.key for change in _read(reader, 1)] == [b"a"]


def test_a_topic_that_does_not_exist_yet_is_waited_for(bootstrap: str) -> None:
    config = {"bootstrap.servers": bootstrap}
    topic = NAMES.changelog("g1", "later")
    with ChangelogReader(config, [topic]) as reader:
        assert reader.read() == []
        Admin(config).create_changelogs([topic])
        _write(bootstrap, topic, {"a": b"[1]"})
        assert [change.key for change in _read(reader, 1)] == [b"a"]


def test_readers_leave_no_group_behind(bootstrap: str) -> None:
    groups = AdminClient({"bootstrap.servers": bootstrap}).list_consumer_groups().result(PATIENCE_S)
    assert groups.valid == []
