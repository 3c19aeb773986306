"""What arrives in the changelogs, and when: every function here is to run in a process of its own."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from multiprocessing.synchronize import Event

from confluent_kafka import Consumer, Message, TopicPartition

from liveboard.contract.errors import LiveboardError

_BATCH = 10_000
# In a name, or in a balance. In a group that is the greatest one, which stands behind the sum, while numbers grow.
_NUMBER = re.compile(rb'"n(\d+)"|[,:](\d+)\.125(?=[,}])')


def distinct_keys(bootstrap: str, topic: str, end: int, timeout_s: float) -> int:
    """How many different rows the changelog has before an offset."""
    keys: set[bytes | None] = set()
    for _, messages in _arrivals(bootstrap, {topic: 0}, timeout_s):
        keys.update(message.key() for message in messages)
        if messages and (messages[-1].offset() or 0) >= end - 1:
            return len(keys)
    raise LiveboardError(f"gave up after {timeout_s:.0f} s of reading {topic} up to offset {end}")


def numbered(
    ready: Event,
    bootstrap: str,
    places: Mapping[str, int],
    first: int,
    wanted: Mapping[str, int],
    timeout_s: float,
) -> dict[str, dict[int, int]]:
    """When each event from a number on was first seen in each changelog, as soon as the wanted count is."""
    seen: dict[str, dict[int, int]] = {topic: {} for topic in places}
    for now_ns, messages in _arrivals(bootstrap, places, timeout_s, ready):
        for message in messages:
            number = number_in(message.value() or b"")
            if number is not None and number >= first:
                seen[message.topic() or ""].setdefault(number, now_ns)
        if all(len(seen[topic]) >= count for topic, count in wanted.items()):
            return seen
    counts = ", ".join(f"{len(seen[topic])} of {count} in {topic}" for topic, count in wanted.items())
    raise LiveboardError(f"gave up after {timeout_s:.0f} s of waiting for events: {counts}")


def number_in(value: bytes) -> int | None:
    """The number of the event that a record shows."""
    found = _NUMBER.findall(value)
    return int(found[-1][0] or found[-1][1]) if found else None


def _arrivals(
    bootstrap: str, places: Mapping[str, int], timeout_s: float, ready: Event | None = None
) -> Iterator[tuple[int, list[Message]]]:
    """What came and the time at which it was here, until the timeout; `ready` is set when it can come."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "bench",
            "enable.auto.commit": False,
            "fetch.queue.backoff.ms": 5,
            "log_level": 0,
        }
    )
    consumer.assign([TopicPartition(topic, 0, offset) for topic, offset in places.items()])
    consumer.list_topics(timeout=timeout_s)  # connects
    if ready:
        ready.set()
    deadline = time.monotonic() + timeout_s
    try:
        while time.monotonic() < deadline:
            first = consumer.poll(0.2)
            if first is not None:
                yield time.time_ns(), _checked([first])
                rest = consumer.consume(_BATCH, 0)
                yield time.time_ns(), _checked(rest)
    finally:
        consumer.close()


def _checked(messages: list[Message]) -> list[Message]:
    for message in messages:
        if error := message.error():
            raise LiveboardError(f"cannot read {message.topic()}: {error.str()}")
    return messages
