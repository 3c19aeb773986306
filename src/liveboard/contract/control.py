"""Control messages: what they may say, and what they ask for.

A message changes what it names, and nothing else:

    {"topics": {"users": "users-2026"}, "joins": {"final_ui": "inner"}}

`joinType` names the kind of the board's first join, whatever that is called. The short form has a field for the topic
of each source, and without `joinType` it asks for a left join:

    {"usersTopic": "users-2026", "accountsTopic": "accounts-2026", "joinType": "inner"}

Fields that are not known are ignored.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from liveboard.contract.board import Board, Wiring
from liveboard.contract.errors import LiveboardError, either, nearest
from liveboard.contract.joins import JOIN_KINDS
from liveboard.contract.names import Names, is_topic_name

FIRST_JOIN = ""
"""Stands for the board's first join where its name is not known."""
_DEFAULT_KIND = "left"
_SHOWN_CHARACTERS = 100


def control_message(topics: Mapping[str, str], joins: Mapping[str, str]) -> dict[str, Any]:
    """The message that asks for these topics, by source, and these kinds, by join; all else stays as it is."""
    message: dict[str, Any] = {"topics": dict(topics)}
    if FIRST_JOIN in joins:
        message["joinType"] = joins[FIRST_JOIN]
    if named := {name: kind for name, kind in joins.items() if name != FIRST_JOIN}:
        message["joins"] = named
    return message


def judge(value: bytes | None, board: Board, now: Wiring, names: Names) -> Wiring:
    """The wiring that a message asks for where the board has, or is about to have, the wiring `now`.

    A LiveboardError says what is wrong with the message.
    """
    document = _document(value)
    general = bool(document.keys() & {"topics", "joins"})
    topics = _general_topics(document, board) if general else _short_topics(document, board)
    joins = _joins(document, board, None if general else _DEFAULT_KIND)
    if (not topics and not joins) or (not general and not topics and "joinType" not in document):
        fields = [*(f"{source}Topic" for source in board.sources), "joinType", "topics", "joins"]
        raise LiveboardError(f"expected at least one of {', '.join(fields)}, found none of them")
    asked = {source: _topic(at, found, names) for source, (at, found) in topics.items()}
    wiring = Wiring({**now.topics, **asked}, {**now.joins, **joins})
    _check_distinct({source: at for source, (at, _) in topics.items()}, wiring, names.control)
    return wiring


def kind_of_join(at: str, found: object) -> str:
    """The kind of join that a word means: in any case, with blanks around it, or only beginning with "inner"."""
    word = found.strip().lower() if isinstance(found, str) else found
    kind = "inner" if isinstance(word, str) and word.startswith("inner") else word
    if not isinstance(kind, str) or kind not in JOIN_KINDS:
        raise LiveboardError(f"{at}: expected {either(JOIN_KINDS)}, found {_shown(found)}")
    return kind


def _document(value: bytes | None) -> dict[str, Any]:
    if value is None:
        raise LiveboardError("expected a JSON object, found a message without a value")
    document: Any = None
    with contextlib.suppress(orjson.JSONDecodeError):
        document = orjson.loads(value)
    if not isinstance(document, dict):
        raise LiveboardError(f"expected a JSON object, found {_cut(value.decode(errors='replace'))}")
    return document


_Named = dict[str, tuple[str, Any]]
"""By source: where the message names its topic, and what is there."""


def _short_topics(document: Mapping[str, Any], board: Board) -> _Named:
    fields = {source: f"{source}Topic" for source in board.sources}
    return {source: (field, document[field]) for source, field in fields.items() if field in document}


def _general_topics(document: Mapping[str, Any], board: Board) -> _Named:
    topics = _names("topics", document.get("topics", {}), board.sources)
    return {source: (f"topics.{source}", found) for source, found in topics.items()}


def _joins(document: Mapping[str, Any], board: Board, default: str | None) -> dict[str, str]:
    """The kinds that the message names; `default` is the first join's where the message does not name it."""
    joins = _names("joins", document.get("joins", {}), board.joins)
    kinds = {name: kind_of_join(f"joins.{name}", found) for name, found in joins.items()}
    found = document.get("joinType")
    is_named = found is not None and (not isinstance(found, str) or found.strip())
    for first in list(board.joins)[:1]:
        if is_named:
            kinds.setdefault(first, kind_of_join("joinType", found))
        elif default:
            kinds[first] = default
    return kinds


def _names(at: str, found: object, known: Iterable[str]) -> dict[str, Any]:
    """An object whose names are all known."""
    if not isinstance(found, dict):
        raise LiveboardError(f"{at}: expected an object, found {_shown(found)}")
    for name in found:
        if name not in known:
            expected = f"expected one of {', '.join(known)}, found {_shown(name)}, did you mean {nearest(name, known)}?"
            raise LiveboardError(f"{at}: {expected}" if known else f"{at}: expected nothing, found {_shown(name)}")
    return found


def _topic(at: str, found: object, names: Names) -> str:
    topic = found.strip() if isinstance(found, str) else found
    if not isinstance(topic, str) or not is_topic_name(topic):
        expected = 'expected a topic name (1 to 249 letters, digits, ".", "_" or "-")'
        raise LiveboardError(f"{at}: {expected}, found {_shown(found)}")
    if names.owns(topic):
        raise LiveboardError(f"{at}: expected a topic that the board does not write itself, found {_shown(topic)}")
    return topic


def _check_distinct(named: Mapping[str, str], wiring: Wiring, control_topic: str) -> None:
    """Refuses a topic that is there twice; `named` tells where the message names the topic of a source."""
    first: dict[str, str] = {control_topic: "control.topic"}
    for source, topic in wiring.topics.items():
        at = named.get(source, f"the topic of {source}")
        other = first.setdefault(topic, at)
        if other != at:
            raise LiveboardError(f"{at}: expected a topic of its own, found {_shown(topic)} as in {other}")


def _shown(found: object) -> str:
    return "nothing" if found is None else _cut(orjson.dumps(found).decode())


def _cut(text: str) -> str:
    """One line of text that cannot steer a terminal."""
    printable = "".join(c if c.isprintable() else "·" for c in text[:_SHOWN_CHARACTERS])
    return printable if len(text) <= _SHOWN_CHARACTERS else printable + "…"
