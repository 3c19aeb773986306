"""Some records of a topic: the first and the last of every partition, in bounded time and memory."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping

from confluent_kafka import Message

from liveboard.contract.errors import LiveboardError
from liveboard.inspect.formats import SampledRecord
from liveboard.inspect.topic import Topic, describe
from liveboard.kafka.admin import Admin, Offsets
from liveboard.kafka.reader import records_between

_FROM_THE_BEGINNING = 0.2
_PATIENCE_S = 10.0
_LONGEST_S = 20.0
_MOST_BYTES = 128 * 1024 * 1024


def look(client_config: Mapping[str, str], topic: str, records: int) -> Topic:
    """What about so many of the topic's records say; a LiveboardError where there are none, or no such topic."""
    found = excerpt(client_config, topic, records)
    return describe(topic, found, compacted=Admin(client_config).is_compacted(topic))


def excerpt(client_config: Mapping[str, str], topic: str, records: int) -> list[SampledRecord]:
    """About so many records of the topic, from all of its partitions; a LiveboardError where there is no such topic."""
    admin = Admin(client_config)
    partitions = admin.require([topic])
    begin, end = (admin.offsets(partitions, where)[topic] for where in ("earliest", "latest"))
    found: list[SampledRecord] = []
    for start, stop in _ranges(begin, end, records):
        found += _between(client_config, {topic: start}, {topic: stop})
    return found


def _ranges(
    begin: Mapping[str, int], end: Mapping[str, int], records: int
) -> Iterator[tuple[dict[str, int], dict[str, int]]]:
    """Where to read from and to: what the partitions begin with, then what they end with."""
    filled = [partition for partition in begin if end[partition] > begin[partition]]
    if not filled:
        return
    each = max(1, records // len(filled))
    first = max(1, int(each * _FROM_THE_BEGINNING))
    middle = {partition: min(end[partition], begin[partition] + first) for partition in filled}
    yield {partition: begin[partition] for partition in filled}, middle
    late = {partition: max(middle[partition], end[partition] - (each - first)) for partition in filled}
    rest = [partition for partition in filled if end[partition] > late[partition]]
    if rest:
        yield {partition: late[partition] for partition in rest}, {partition: end[partition] for partition in rest}


def _between(client_config: Mapping[str, str], start: Offsets, end: Offsets) -> list[SampledRecord]:
    found: list[SampledRecord] = []
    deadline, size = time.monotonic() + _LONGEST_S, 0
    try:
        for message in records_between(client_config, start, end, _PATIENCE_S):
            found.append(_record(message))
            size += len(message)
            if size > _MOST_BYTES or time.monotonic() > deadline:
                break
    except LiveboardError:
        # What has come is enough to look at.
        if not found:
            raise
    return found


def _record(message: Message) -> SampledRecord:
    headers = tuple(str(header[0]) for header in list(message.headers() or ()))
    return SampledRecord(message.value(), message.key(), headers)
