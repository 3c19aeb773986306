"""Pauses that grow while something keeps failing."""

from __future__ import annotations

import time
from collections.abc import Callable

_FIRST_S = 1.0
_LONGEST_S = 30.0
_HEALTHY_AFTER_S = 60.0


def _no_chance() -> float:
    return 1.0


class Backoff:
    """When to try again: after `first_s`, then each time twice as late, but never later than `longest_s`.

    It begins anew when `reset` is called, and by itself after a minute without a failure. With a `chance` of 0 to 1,
    every pause but the first is somewhere in its upper half, so that many who wait for one server come back one by one.
    """

    def __init__(
        self, longest_s: float = _LONGEST_S, first_s: float = _FIRST_S, chance: Callable[[], float] = _no_chance
    ) -> None:
        self._longest_s = longest_s
        self._first_s = first_s
        self._chance = chance
        self._pause = first_s
        self._until = 0.0
        self.failures = 0
        """How often it failed in a row."""

    def failed(self) -> float:
        """Notes a failure; returns the seconds to wait from now."""
        now = time.monotonic()
        if self._until and now - self._until > _HEALTHY_AFTER_S:
            self.reset()
        self.failures += 1
        pause = self._pause if self._pause == self._first_s else self._pause * (0.5 + self._chance() / 2)
        self._pause = min(2 * self._pause, self._longest_s)
        self._until = now + pause
        return pause

    def reset(self) -> None:
        """Notes that it worked: the next pause is a first one again."""
        self._pause = self._first_s
        self.failures = 0

    @property
    def over(self) -> bool:
        """Whether the last pause is over."""
        return time.monotonic() >= self._until
