"""How long to wait before the next try."""

from __future__ import annotations

import random
from collections.abc import Callable

FIRST_S = 0.15
LONGEST_S = 10.0


class Backoff:
    """The first wait is FIRST_S; each one after it up to twice as long, at random, and never over LONGEST_S."""

    def __init__(self, chance: Callable[[], float] = random.random) -> None:
        self._chance = chance
        self._tries = 0

    def next(self) -> float:
        """Seconds to wait now."""
        ceiling = min(LONGEST_S, FIRST_S * 2.0 ** min(self._tries, 16))
        self._tries += 1
        # Somewhere in the upper half, so that many clients of one server do not come back all at once.
        return ceiling if self._tries == 1 else ceiling * (0.5 + self._chance() / 2)

    def reset(self) -> None:
        """It worked: the next wait is a first one again."""
        self._tries = 0
