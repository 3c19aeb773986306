"""`liveboard inspect`: the TOML of a source for a topic."""

from __future__ import annotations

from liveboard.config import Settings
from liveboard.inspect.board import source_names, table_names
from liveboard.inspect.excerpt import look
from liveboard.inspect.toml import source_toml
from liveboard.kafka import address, security


def run(settings: Settings, topic: str, records: int) -> str:
    """The section of a source that reads the topic, made from about so many of its records."""
    kafka = security.librdkafka(settings.kafka, address.reachable(address.bootstrap(settings)))
    source = source_names([topic])[topic]
    tables, _ = table_names([source], [])
    return source_toml(look(kafka, topic, records), source, tables[source])
