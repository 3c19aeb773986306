"""When viewers are sent what is new."""

from __future__ import annotations

import asyncio
from typing import Protocol

# Beyond this many frames a second, all viewers together, each of them gets several changes in one.
FRAMES_PER_S = 20_000
_SHORTEST_PAUSE_S = 0.002


class Sender(Protocol):
    """Who has something to send."""

    def send_owed(self) -> None:
        """Sends it."""


class Rounds:
    """Has viewers send at once while few have anything to send, and all together from time to time when many do.

    One timer for all: a timer for each viewer would be a fifth of what a frame costs.
    """

    def __init__(self) -> None:
        self._due: dict[Sender, None] = {}
        self._next: asyncio.Handle | None = None
        self._free_at_s = 0.0
        """When what was sent last has had its time."""

    def call(self, sender: Sender) -> None:
        """Has it send in the next round."""
        self._due[sender] = None
        if self._next is None:
            loop = asyncio.get_running_loop()
            is_free = self._free_at_s - loop.time() < _SHORTEST_PAUSE_S
            self._next = loop.call_soon(self._go) if is_free else loop.call_at(self._free_at_s, self._go)

    def _go(self) -> None:
        self._next = None
        due, self._due = self._due, {}
        self._free_at_s = asyncio.get_running_loop().time() + len(due) / FRAMES_PER_S
        for sender in due:
            sender.send_owed()
