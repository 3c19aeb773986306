"""`liveboard send`: one record for a source, such as the very first one."""

from __future__ import annotations

import json

from confluent_kafka import KafkaError, Message, Producer

from liveboard.config import Settings
from liveboard.contract.errors import LiveboardError, nearest
from liveboard.kafka import address, security
from liveboard.kafka.admin import Admin

_WITHIN_S = 10


def run(settings: Settings, source: str, text: str) -> str:
    """Sends a JSON object to the topic that the source is configured with; says where Kafka has put it."""
    sources = settings.board.sources
    if source not in sources:
        hint = f", did you mean {nearest(source, sources)}?"
        raise LiveboardError(f"expected a source of the board ({', '.join(sources)}), found {source}{hint}")
    try:
        is_object = isinstance(json.loads(text), dict)
    except ValueError:
        is_object = False
    if not is_object:
        raise LiveboardError('expected a JSON object such as \'{"name": "Ada"}\', found something else')
    kafka = security.librdkafka(settings.kafka, address.reachable(address.bootstrap(settings)))
    topic = sources[source].topic
    if settings.kafka.embedded:
        Admin(kafka).create([topic])
    reports: list[tuple[KafkaError | None, Message]] = []
    producer = Producer({**kafka, "message.timeout.ms": _WITHIN_S * 1000, "linger.ms": 0, "log_level": 0})
    producer.produce(topic, text.encode(), on_delivery=lambda error, sent: reports.append((error, sent)))
    producer.flush(2 * _WITHIN_S)
    if not reports or reports[0][0] is not None:
        why = reports[0][0].str() if reports and reports[0][0] else "no answer"
        raise LiveboardError(f"expected Kafka to take a record for {topic}, found: {why}")
    sent = reports[0][1]
    return f"sent to {topic}, partition {sent.partition()}, offset {sent.offset()}"
