"""Which of several topics can be joined, on what, and how."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations

from liveboard.contract.joins import JoinKind
from liveboard.inspect.columns import is_vague
from liveboard.inspect.guess import words
from liveboard.inspect.topic import Topic, can_be_key

_WORDS_OF_KEYS = ("id", "key", "code", "no", "number", "nr", "sku", "uuid", "ref")


@dataclass(frozen=True)
class Proposal:
    """A join of two sources, and why: how many different values of the left one's records the right one has too."""

    left: str
    right: str
    on: str
    how: JoinKind
    met: int = 0
    of: int = 0


def proposals(topics: Mapping[str, Topic]) -> list[Proposal]:
    """For each pair of sources, by their names, the join on which most values meet, if there is one."""
    found = []
    for first, second in combinations(topics, 2):
        pair = {first: topics[first], second: topics[second]}
        candidates = list(_of_pair(pair))
        if candidates:
            found.append(max(candidates, key=lambda proposal: proposal.met / max(1, proposal.of)))
    return found


def _of_pair(pair: Mapping[str, Topic]) -> Iterator[Proposal]:
    (first, one), (second, other) = pair.items()
    for column in one.columns:
        on = column.name
        same = other.column(on)
        if same is None or same.type != column.type or not can_be_key(column) or is_vague(on):
            continue
        if any(topic.is_table and topic.row_key != (on,) for topic in pair.values()):
            continue
        values = {name: set(topic.column(on).values) - {None} for name, topic in pair.items()}  # type: ignore[union-attr]
        meeting = len(values[first] & values[second])
        if not meeting or not _is_key(on, one, other):
            continue
        left, right, how = _direction(on, pair)
        yield Proposal(left, right, on, how, meeting, len(values[left]))


def _is_key(on: str, *topics: Topic) -> bool:
    """Whether the column tells things apart, and is not one of those that have a few values everywhere."""
    return words(on)[-1:] in [[word] for word in _WORDS_OF_KEYS] or any(
        topic.is_one_per_key(on) or topic.key == (on,) for topic in topics
    )


def _direction(on: str, pair: Mapping[str, Topic]) -> tuple[str, str, JoinKind]:
    """Many records per key are joined to one per key; where both have many, the time decides which one."""
    single = [name for name, topic in pair.items() if topic.is_one_per_key(on)]
    first, second = pair
    if len(single) == 1:
        return (second, first, "left") if single == [first] else (first, second, "left")
    if len(single) == 2:
        # What is a table by key enriches; the other one has the rows.
        tables = [name for name, topic in pair.items() if topic.is_table]
        return (second, first, "left") if tables == [first] else (first, second, "left")
    return (*sorted(pair, key=lambda name: -_records_per_key(pair[name], on)), "asof")  # type: ignore[return-value]


def _records_per_key(topic: Topic, on: str) -> float:
    values = [value for value in topic.column(on).values if value is not None]  # type: ignore[union-attr]
    return len(values) / len(set(values))
