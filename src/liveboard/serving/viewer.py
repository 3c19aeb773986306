"""One viewer: what it has subscribed to, and what it is owed.

Nobody waits for a viewer: what its connection does not take at once is left to the viewer's own task.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

from liveboard.contract import frames
from liveboard.serving.auth import Grant
from liveboard.serving.limits import Limits
from liveboard.serving.metrics import Counters
from liveboard.serving.rounds import Rounds
from liveboard.serving.subscription import Subscription
from liveboard.serving.viewer_socket import Outlet

_BEAT = frames.encode(frames.Beat())


class Viewer:
    """One connection, and what its key allows."""

    def __init__(self, grant: Grant, limits: Limits, rounds: Rounds, outlet: Outlet, counters: Counters) -> None:
        self.grant = grant
        self.subscriptions: dict[int, Subscription] = {}
        self._limits = limits
        self._rounds = rounds
        self._outlet = outlet
        self._counters = counters
        self._is_sending = False
        self._answers: deque[str] = deque()
        self._owed: dict[Subscription, None] = {}
        self._beat_due = False
        self._woken = asyncio.Event()

    @property
    def is_flooded(self) -> bool:
        """Whether it asks more than it reads."""
        return len(self._answers) > self._limits.waiting

    def say(self, frame: frames.ServerFrame) -> None:
        """Sends a frame, after those before."""
        self._answers.append(frames.encode(frame))
        self._woken.set()

    def owe(self, subscription: Subscription) -> None:
        """Sends what is new in a subscription, when its turn comes and the connection takes it."""
        self._owed[subscription] = None
        self._rounds.call(self)

    def beat(self) -> None:
        """Lets it know that the server is there; once, however long it does not read."""
        self._beat_due = True
        self._woken.set()

    def drop(self, id: int) -> None:
        """Ends a subscription, if there is one."""
        subscription = self.subscriptions.pop(id, None)
        if subscription is not None:
            self._owed.pop(subscription, None)
            subscription.close()

    def send_owed(self) -> None:
        """Sends what is owed as far as the connection takes it at once, and leaves the rest to `send_all`."""
        while self._owed and self._outlet.is_free and not self._is_sending and not self._answers:
            for text in self._take_owed():
                self._outlet.write(text)
        if self._owed:
            self._woken.set()

    async def send_all(self, send: Callable[[str], Awaitable[None]]) -> None:
        """Sends, and waits for the connection where it takes nothing, for as long as it lasts."""
        while True:
            await self._woken.wait()
            self._woken.clear()
            self._is_sending = True
            while self._answers or self._owed or self._beat_due:
                while self._answers:
                    await send(self._answers.popleft())
                if self._beat_due:
                    self._beat_due = False
                    await send(_BEAT)
                if self._owed:
                    for text in self._take_owed():
                        await send(text)
            self._is_sending = False

    def _take_owed(self) -> list[str]:
        subscription = next(iter(self._owed))
        del self._owed[subscription]
        return subscription.take(self._counters)
