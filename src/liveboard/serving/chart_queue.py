"""The charts of one table: those that are asked for, and those that were just computed.

A chart is computed anew at most every KEPT_S, however many ask for it, and one that takes long less often.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from liveboard.contract.frames import Code, FrameError
from liveboard.serving.chart import Chart, ChartAsk

KEPT_S = 1.0
MAX_WAITING = 50
_KEPT_PER_WORK = 10.0


class ChartQueue:
    """Belongs to the event loop; `wake` is called when there is something to compute."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._waiting: dict[ChartAsk, asyncio.Future[Chart]] = {}  # the oldest first
        self._kept: dict[ChartAsk, Chart] = {}

    async def chart(self, ask: ChartAsk) -> Chart:
        """What has just been computed for another, or is computed now."""
        if ask in self._kept:
            return self._kept[ask]
        if ask not in self._waiting:
            if len(self._waiting) >= MAX_WAITING:
                raise FrameError(Code.OVERLOADED, f"expected up to {MAX_WAITING} charts at a time, found one more")
            self._waiting[ask] = asyncio.get_running_loop().create_future()
            self._wake()
        return await asyncio.shield(self._waiting[ask])

    async def compute_next(self, compute: Callable[[ChartAsk], Awaitable[Chart]]) -> None:
        """Answers those who have waited longest, if anyone waits."""
        if not self._waiting:
            return
        ask = next(iter(self._waiting))
        loop = asyncio.get_running_loop()
        started = loop.time()
        chart = self._kept[ask] = await compute(ask)
        kept_s = max(KEPT_S, (loop.time() - started) * _KEPT_PER_WORK)
        loop.call_later(kept_s, self._kept.pop, ask)
        self._waiting.pop(ask).set_result(chart)
        if self._waiting:
            self._wake()

    def refuse(self) -> None:
        """Tells all who wait that nothing comes."""
        for asked in self._waiting.values():
            asked.set_exception(FrameError(Code.OVERLOADED, "expected a chart, found no answer; try again later"))
        self._waiting.clear()
