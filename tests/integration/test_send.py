"""`liveboard send`: the first record of a source."""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer, TopicPartition
from live import PATIENCE_S

from liveboard.commands import send
from liveboard.config import KafkaSettings, Settings
from liveboard.contract.errors import LiveboardError
from liveboard.kafka.admin import Admin

pytestmark = pytest.mark.integration


def test_a_record_arrives_as_it_is_written(kafka: str) -> None:
    Admin({"bootstrap.servers": kafka}).create(["users"])
    said = send.run(Settings(kafka=KafkaSettings(bootstrap_servers=kafka)), "users", '{"userId": "u1"}')
    place, _, offset = said.rpartition(" ")
    assert place == "sent to users, partition 0, offset"
    consumer = Consumer({"bootstrap.servers": kafka, "group.id": "tests", "enable.auto.commit": False})
    consumer.assign([TopicPartition("users", 0, int(offset))])
    message = consumer.poll(PATIENCE_S)
    consumer.close()
    assert message is not None
    assert message.value() == b'{"userId": "u1"}'


@pytest.mark.parametrize(
    ("source", "text", "error"),
    [
        ("user", "{}", "expected a source of the board .users, accounts., found user, did you mean users?"),
        ("users", "[1]", "expected a JSON object such as .*, found something else"),
        ("users", "x", "expected a JSON object such as .*, found something else"),
    ],
)
def test_what_is_no_record_is_not_sent(source: str, text: str, error: str) -> None:
    with pytest.raises(LiveboardError, match=error):
        send.run(Settings(), source, text)
