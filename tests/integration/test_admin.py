"""Topics that somebody else creates or deletes at the same time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from unittest.mock import Mock, patch

import pytest
from harness import until

from liveboard.contract.errors import LiveboardError
from liveboard.kafka.admin import Admin
from liveboard.kafka.trouble import KafkaUnavailable

pytestmark = pytest.mark.integration
_TOPICS = [f"shared-{number}" for number in range(30)]


def _at_once(kafka: str, what: Callable[[Admin], Callable[[Iterable[str]], None]]) -> None:
    """The same order of several clients, whose looks at what is there come before the others' orders are done."""
    admins = [Admin({"bootstrap.servers": kafka}) for _ in range(6)]
    with ThreadPoolExecutor(len(admins)) as threads:
        for each in [threads.submit(what(admin), _TOPICS) for admin in admins]:
            each.result()


def test_who_comes_second_has_no_error(kafka: str) -> None:
    _at_once(kafka, lambda admin: admin.create)
    assert set(_TOPICS) <= Admin({"bootstrap.servers": kafka}).partitions().keys()
    _at_once(kafka, lambda admin: admin.delete)
    until(lambda: Admin({"bootstrap.servers": kafka}).partitions().keys().isdisjoint(_TOPICS), "the end of the topics")


def test_a_topic_that_was_not_there_is_found_when_it_is(kafka: str) -> None:
    admin, other = (Admin({"bootstrap.servers": kafka}) for _ in range(2))
    admin.create(["known"])
    assert admin.offsets({"known": 1}, "latest") == {"known": {"0": 0}}
    with pytest.raises(LiveboardError, match="cannot read Kafka topic 'late'"):
        admin.offsets({"late": 1}, "latest")
    other.create(["late"])

    def is_found() -> bool:
        try:
            return admin.offsets({"late": 1}, "latest") == {"late": {"0": 0}}
        except LiveboardError:
            return False

    until(is_found, "the topic")
    other.delete(["known", "late"])


def test_a_client_that_does_not_answer_in_time_is_a_kafka_that_is_away(kafka: str) -> None:
    admin = Admin({"bootstrap.servers": kafka})
    with (
        patch("liveboard.kafka.admin._TIMEOUT_S", 0.01),
        patch.object(admin, "_client", Mock(describe_topics=lambda *_, **__: {"known": Future()})),
        pytest.raises(KafkaUnavailable, match="expected a Kafka broker at"),
    ):
        admin.topic_ids(["known"])
