"""How far topics have been read, by what a consumer gives."""

from __future__ import annotations

from typing import Any, cast

import pytest
from confluent_kafka import KafkaError, Message

from liveboard.contract.errors import LiveboardError
from liveboard.kafka.reader import note_position


class Given:
    """A record, or an error in place of one."""

    def __init__(self, topic: str, offset: int, code: int | None = None) -> None:
        self._given = topic, offset, None if code is None else KafkaError(code)

    def topic(self) -> str:
        return self._given[0]

    def offset(self) -> int:
        return self._given[1]

    def error(self) -> KafkaError | None:
        return self._given[2]


def noted(positions: dict[str, int], *given: Any) -> bool:
    return note_position(cast(Message, Given(*given)), positions)


def test_a_record_and_the_end_of_a_topic_say_how_far_it_is_read() -> None:
    positions = {"t": 0}
    assert noted(positions, "t", 4)
    assert positions == {"t": 5}
    # Compaction and markers leave nothing to read before the end.
    assert not noted(positions, "t", 9, KafkaError._PARTITION_EOF)
    assert positions == {"t": 9}
    assert not noted(positions, "t", 7, KafkaError._PARTITION_EOF)
    assert not noted(positions, "t", 30, KafkaError._ALL_BROKERS_DOWN)
    assert positions == {"t": 9}


def test_other_topics_have_no_position() -> None:
    positions = {"t": 0}
    assert noted(positions, "u", 4)
    assert not noted(positions, "u", 9, KafkaError._PARTITION_EOF)
    assert positions == {"t": 0}


def test_a_refusal_names_the_topic() -> None:
    with pytest.raises(LiveboardError, match="secret"):
        noted({}, "secret", 0, KafkaError.TOPIC_AUTHORIZATION_FAILED)
