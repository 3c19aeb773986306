"""How often statements are asked again: all of them together work for no more than a tenth of the time.

The tenth is divided so that on the whole their answers are as new as can be: one that costs four times as much waits
twice as long. So a heavy statement does not keep light ones waiting, and is not forgotten for them. Who has nothing to
do leaves its part to the others.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import AsyncIterator, Callable, Hashable

SHARE = 0.1
EVERY_S = 0.2
# What a statement waits for may have become less.
_LOOK_AGAIN_S = 1.0


class Pace:
    """Of statements that are asked one after the other; belongs to the event loop."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._costs: dict[Hashable, float] = {}
        self._ended: dict[Hashable, float] = {}
        self._resting: dict[Hashable, float] = {}
        self._waiting: set[Hashable] = set()
        self._free_at = 0.0
        self._turn = asyncio.Lock()

    @contextlib.asynccontextmanager
    async def turn(self, who: Hashable) -> AsyncIterator[None]:
        """Waits until it may be asked, and lets no other one in meanwhile."""
        self._waiting.add(who)
        try:
            while (left := self.due_at(who) - self._clock()) > 0:
                await asyncio.sleep(min(left, _LOOK_AGAIN_S))
            async with self._turn:
                await asyncio.sleep(self._free_at - self._clock())
                yield
        finally:
            self._waiting.discard(who)

    def took(self, who: Hashable, seconds: float, *, is_first: bool = False) -> None:
        """It has been asked, which took so long; the first time is a gift."""
        now = self._clock()
        self._costs[who], self._ended[who] = seconds, now
        self._resting[who] = now + self.rest_s(seconds)
        if not is_first:
            # Evenly: each has its turn before the quickest one is due again.
            busy = self._busy()
            shortest = min(self.rest_s(self._costs[each]) for each in busy)
            self._free_at = now + min(seconds / SHARE - seconds, shortest / len(busy))

    def forget(self, who: Hashable) -> None:
        """It is not asked any more."""
        for known in (self._costs, self._ended, self._resting):
            known.pop(who, None)

    def due_at(self, who: Hashable) -> float:
        """When it may be asked again."""
        return self._ended[who] + self.rest_s(self._costs[who]) if who in self._costs else 0.0

    def rest_s(self, seconds: float) -> float:
        """How long one that takes so long rests from its end to its next beginning."""
        roots = sum(math.sqrt(self._costs[each]) for each in self._busy())
        return max(EVERY_S, math.sqrt(seconds) * roots / SHARE - seconds)

    def _busy(self) -> list[Hashable]:
        """Those that have something to do, or have just done it."""
        now = self._clock()
        return [who for who in self._costs if who in self._waiting or self._resting.get(who, now) > now]
