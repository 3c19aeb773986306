"""The kinds of joins: one entry for each, with what all layers have to know of it.

`pipeline/joins.py` has what each kind does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

JoinKind = Literal["left", "inner", "asof"]


@dataclass(frozen=True, kw_only=True)
class JoinTraits:
    """What is known of one kind of join without the pipeline."""

    name: JoinKind
    """As the configuration and control messages write it."""
    matches_in_time: bool
    """Whether a left record matches no right one that is later."""
    right_in_words: str
    """What a left record gets of the right source."""


_ALL = (
    JoinTraits(name="left", matches_in_time=False, right_in_words="its newest record"),
    JoinTraits(name="inner", matches_in_time=False, right_in_words="every record"),
    JoinTraits(name="asof", matches_in_time=True, right_in_words="as of its time"),
)

JOINS: Mapping[str, JoinTraits] = {traits.name: traits for traits in _ALL}
JOIN_KINDS: tuple[JoinKind, ...] = tuple(traits.name for traits in _ALL)
"""Every kind of join, the most usual first."""
