"""The one base of every error that is the user's to read, and what helps to word it."""

import difflib
from collections.abc import Iterable


class LiveboardError(Exception):
    """An error whose message is clear to the user as it stands; the CLI prints it and exits 1."""


def nearest(word: str, known: Iterable[str]) -> str:
    """The known word with the closest spelling, however far it is: what a message asks "did you mean" about."""
    return difflib.get_close_matches(word, list(known), 1, cutoff=0)[0]


def either(words: Iterable[str]) -> str:
    """The words as a sentence lists them: "left, inner or asof"."""
    *most, last = words
    return f"{', '.join(most)} or {last}" if most else last
