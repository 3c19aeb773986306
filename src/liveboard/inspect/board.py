"""The TOML of a whole configuration: Kafka, the sources and their joins."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from liveboard.config import KafkaSettings, Secret
from liveboard.config.environment import variable
from liveboard.contract.names import RESERVED_TABLES
from liveboard.inspect.joins import Proposal
from liveboard.inspect.toml import source_toml, string
from liveboard.inspect.topic import Topic, free_name


def source_names(topics: Iterable[str]) -> dict[str, str]:
    """A name for the source of each topic: the last word of the topic's name, or all of it where two are alike."""
    names: dict[str, str] = {}
    for topic in topics:
        last, whole = (_word(text) for text in (topic.rpartition(".")[2], topic))
        taken = set(names.values())
        names[topic] = last if free_name(last, taken) == last else free_name(whole, taken)
    return names


def table_names(sources: Iterable[str], joins: Sequence[Proposal]) -> tuple[dict[str, str], list[str]]:
    """A name for the table of each source, and for that of each join."""
    taken = set(RESERVED_TABLES)
    tables: dict[str, str] = {}
    for source in sources:
        tables[source] = free_name(f"{source}_ui", taken)
        taken.add(tables[source])
    joined = []
    for join in joins:
        joined.append(free_name(f"{join.left}_{join.right}", taken))
        taken.add(joined[-1])
    return tables, joined


def board_toml(kafka: KafkaSettings, name: str, topics: Mapping[str, Topic], joins: Sequence[Proposal]) -> str:
    """The configuration of a board with these sources, by name, and these joins; no secret and no data is in it."""
    tables, joined = table_names(topics, joins)
    parts = [_kafka(kafka), f"[board]\nname = {string(name)}\n"]
    parts += [source_toml(topic, source, tables[source], examples=False) for source, topic in topics.items()]
    parts += [_join(table, join) for table, join in zip(joined, joins, strict=True)]
    return "\n".join(parts)


def _join(table: str, join: Proposal) -> str:
    values = {"left": join.left, "right": join.right, "on": join.on, "how": join.how}
    lines = [f"[board.joins.{table}]", *(f"{word} = {string(value)}" for word, value in values.items())]
    return "\n".join(lines) + "\n"


def secrets(kafka: KafkaSettings) -> dict[str, str]:
    """The secrets of these settings, by the environment variables that can hold them."""
    given = _given(kafka)
    return {variable(("kafka", *key)): value.reveal() for key, value in given.items() if isinstance(value, Secret)}


def _kafka(kafka: KafkaSettings) -> str:
    lines = ["[kafka]"]
    for key, value in _given(kafka).items():
        name = ".".join(key)
        if isinstance(value, Secret):
            lines.append(f"# {name} is a secret: set {variable(('kafka', *key))}, or the same with _FILE")
        else:
            lines.append(f"{name} = {string(value)}")
    return "\n".join(lines) + "\n"


def _given(section: Any, at: tuple[str, ...] = ()) -> dict[tuple[str, ...], str | Secret]:
    """The texts and secrets that differ from the defaults."""
    found: dict[tuple[str, ...], str | Secret] = {}
    for field in fields(section):
        value, key = getattr(section, field.name), (*at, field.name)
        if is_dataclass(value):
            found |= _given(value, key)
        elif isinstance(value, str | Secret) and value != field.default:
            found[key] = value
    return found


def _word(text: str) -> str:
    word = re.sub(r"[^A-Za-z0-9_]", "_", text)
    return word if word and not word[0].isdigit() else f"t{word}"
