"""When viewers are sent what is new."""

from __future__ import annotations

import asyncio
from collections.abc import Sized
from typing import Protocol

# Beyond this many frames a second, all viewers together, each of them gets several changes in one.
FRAMES_PER_S = 20_000
_SHORTEST_ROUND_S = 0.002


class Sender(Protocol):
    """Who has something to send."""

    def send_owed(self) -> None:
        """Sends it."""


class Rounds:
    """Has viewers send at once while they are few, and all together from time to time when they are many.

    One timer for all: a timer for each viewer would be a fifth of what a frame costs.
    """

    def __init__(self, viewers: Sized) -> None:
        self._viewers = viewers
        self._due: dict[Sender, None] = {}
        self._next: asyncio.Handle | None = None
        self._last_s = 0.0

    def call(self, sender: Sender) -> None:
        """Has it send in the next round."""
        self._due[sender] = None
        if self._next is None:
            loop = asyncio.get_running_loop()
            length_s = len(self._viewers) / FRAMES_PER_S
            is_short = length_s < _SHORTEST_ROUND_S
            self._next = loop.call_soon(self._go) if is_short else loop.call_at(self._last_s + length_s, self._go)

    def _go(self) -> None:
        self._last_s = asyncio.get_running_loop().time()
        self._next = None
        due, self._due = self._due, {}
        for sender in due:
            sender.send_owed()
