"""Pauses that grow while something keeps failing."""

import time

_FIRST_S = 1.0
_LONGEST_S = 30.0
_HEALTHY_AFTER_S = 60.0


class Backoff:
    """When to try again: after a second, then ever later, and anew after a minute without a failure."""

    def __init__(self, longest_s: float = _LONGEST_S) -> None:
        self._longest_s = longest_s
        self._pause = _FIRST_S
        self._until = 0.0

    def failed(self) -> float:
        """Notes a failure; returns the seconds to wait from now."""
        now = time.monotonic()
        if self._until and now - self._until > _HEALTHY_AFTER_S:
            self._pause = _FIRST_S
        pause, self._pause = self._pause, min(2 * self._pause, self._longest_s)
        self._until = now + pause
        return pause

    @property
    def over(self) -> bool:
        """Whether the last pause is over."""
        return time.monotonic() >= self._until
