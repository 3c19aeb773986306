"""One expression out of many."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


def folded(join: Callable[[T, T], T], parts: Sequence[T]) -> T:
    """All parts, at least one, joined by something associative, in their order.

    Neighbours are joined, then what they became: a thousand are ten deep. Spark walks through expressions by calling
    itself, and joined one after the other, a thousand are more than its stack holds.
    """
    found = list(parts)
    while len(found) > 1:
        pairs = [join(*found[at : at + 2]) for at in range(0, len(found) - 1, 2)]
        found = pairs + found[2 * len(pairs) :]
    return found[0]
