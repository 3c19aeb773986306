"""The TOML of a source, with what was seen as comments."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

from liveboard.contract.paths import written_path
from liveboard.inspect.columns import SeenColumn
from liveboard.inspect.formats import FoundFormat
from liveboard.inspect.topic import Topic

_EXAMPLES = 2
_LONGEST_EXAMPLE = 40
_WIDEST = 60
_BARE = re.compile(r"[A-Za-z0-9_-]+")


def source_toml(topic: Topic, name: str, table: str, *, examples: bool = True) -> str:
    """The section of a source, with remarks; only remarks where no board can show the topic."""
    lines = [comment(remark) for remark in remarks(topic)]
    if topic.has_columns:
        lines += _section(topic, name, table, examples=examples)
    elif topic.format is FoundFormat.AVRO:
        lines += [f"# {line}" for line in _settings(topic, name, table)]
    return "\n".join(lines) + "\n"


def remarks(topic: Topic) -> Iterator[str]:
    """What a person should know about the topic, a sentence each."""
    yield f"{topic.name}: {_FORMATS[topic.format]}, as far as {_counted(topic.records, 'record')} can tell."
    match topic.format:
        case FoundFormat.AVRO:
            ids = ", ".join(map(str, topic.schema_ids[:10]))
            yield f"The schema ids are {ids}. The columns are known once registry.url is set to the schema registry."
        case FoundFormat.TEXT | FoundFormat.BYTES:
            yield f"No board can show it: expected JSON objects, found {_short(topic.example)}."
    if topic.format in (FoundFormat.TEXT, FoundFormat.BYTES, FoundFormat.AVRO):
        return
    if topic.others:
        yield f"{_counted(topic.others, 'record')} of another format would be in rejects_ui."
    if topic.tombstones:
        yield f"{_counted(topic.tombstones, 'tombstone')} among them: each removes a row."
    if not topic.columns:
        yield "No board can show it: expected fields with values, found none."
    yield from _about_keys(topic)
    if topic.empty:
        yield f"Always null so far, and therefore no columns: {_listed(topic.empty)}."
    if topic.left_out:
        yield f"Left out, for their names or because there are so many: {_listed(topic.left_out)}."
    if topic.header_names:
        header = topic.header_names[0]
        more = ", ".join(map(_short, topic.header_names))
        yield f"Headers: {more}. A column of one: {_key(_word(header))} = {{ from = {string(f'headers.{header}')} }}"


_FORMATS = {
    FoundFormat.JSON: "JSON objects",
    FoundFormat.DEBEZIUM: "changes of a database table (Debezium)",
    FoundFormat.AVRO: "Avro with a schema registry's header",
    FoundFormat.TEXT: "plain text",
    FoundFormat.BYTES: "bytes of an unknown format",
}


def _about_keys(topic: Topic) -> Iterator[str]:
    key = " and ".join(topic.key)
    if topic.is_table:
        of = "a Kafka key" if topic.kafka_key_column else " and ".join(topic.row_key)
        yield f"It is a table by key: the newest record of {of} is the row."
    elif topic.key and topic.repeated and not topic.unique:
        yield f"The Kafka key is {key}, and keys repeat. If a record replaces the one before of its key, add:"
        yield f'mode = "upsert", key = {_key_value(topic.key)}'
    elif topic.key:
        yield f"The Kafka key is {key}."
    if topic.unique and not topic.is_table and topic.key != (topic.unique,):
        yield f"The likely key is {topic.unique}: all its values differ."


def _section(topic: Topic, name: str, table: str, *, examples: bool) -> Iterator[str]:
    yield from _settings(topic, name, table)
    yield ""
    yield f"[board.sources.{name}.columns]"
    lines = [(_column(column), _about(column, examples=examples)) for column in topic.columns]
    if topic.kafka_key_column:
        lines.insert(0, (f'{topic.kafka_key_column} = {{ from = "key" }}', "the Kafka key"))
    width = min(_WIDEST, max(len(line) for line, _ in lines))
    for line, about in lines:
        yield f"{line:{width}}  {comment(about)}" if about else line


def _settings(topic: Topic, name: str, table: str) -> Iterator[str]:
    yield f"[board.sources.{name}]"
    yield f"topic = {string(topic.name)}"
    yield f"table = {string(table)}"
    if topic.format is not FoundFormat.JSON:
        yield f"format = {string(topic.format)}"
    if topic.format is FoundFormat.AVRO:
        yield 'registry.url = "http://localhost:8081"'
    if topic.is_table:
        if topic.format is not FoundFormat.DEBEZIUM:
            yield 'mode = "upsert"'
        yield f"key = {_key_value(topic.row_key)}"


def _column(column: SeenColumn) -> str:
    parts = {"type": column.type}
    if column.words != (column.name,):
        parts["path"] = written_path(column.words)
    if column.unit:
        parts.setdefault("path", written_path(column.words))
        parts["unit"] = column.unit
    if len(parts) == 1:
        return f"{_key(column.name)} = {string(column.type)}"
    return f"{_key(column.name)} = {{ {', '.join(f'{word} = {string(value)}' for word, value in parts.items())} }}"


def _about(column: SeenColumn, *, examples: bool) -> str:
    some = dict.fromkeys(_short(value) for value in column.values if value is not None) if examples else {}
    parts = [", ".join(list(some)[:_EXAMPLES])] if some else []
    if column.remark:
        parts.append(column.remark)
    if column.strays:
        parts.append(f"{_counted(column.strays, 'value')} of another type")
    nulls = 100 * column.nulls / len(column.values)
    parts.append(f"null in {nulls:.0f} %" if nulls >= 1 else "sometimes null" if nulls else "never null")
    return "; ".join(parts)


def comment(text: str) -> str:
    """The text as a comment of one line."""
    return "# " + "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in text)


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=lambda number: float(number))
    if isinstance(value, Decimal):
        text = str(value)
    return text if len(text) <= _LONGEST_EXAMPLE else f"{text[: _LONGEST_EXAMPLE - 1]}…"


def _counted(many: int, what: str) -> str:
    return f"{many:,} {what}" if many == 1 else f"{many:,} {what}s"


def _listed(paths: Sequence[tuple[str, ...]]) -> str:
    shown = [".".join(words) for words in paths[:10]]
    return ", ".join(shown) + (f" and {len(paths) - 10:,} more" if len(paths) > 10 else "")


def string(text: str) -> str:
    """The text as TOML writes it."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _key(word: str) -> str:
    return word if _BARE.fullmatch(word) else string(word)


def _word(text: str) -> str:
    return re.sub(r"\W", "_", text, flags=re.ASCII)


def _key_value(names: Sequence[str]) -> str:
    return string(names[0]) if len(names) == 1 else f"[{', '.join(map(string, names))}]"
