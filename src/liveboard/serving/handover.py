"""How a thread has the event loop do things."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

AHEAD = 8
_WAIT_S = 0.2


class Handover:
    """Has the loop do one thing after the other; the thread waits while the loop has AHEAD of them still to do."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, stopping: threading.Event, failed: Callable[[Exception], None]
    ) -> None:
        self._loop = loop
        self._stopping = stopping
        self._failed = failed
        self._room = threading.Semaphore(AHEAD)

    def do(self, act: Callable[..., None], *arguments: Any) -> None:
        """Has the loop do it, unless it is stopping."""
        while not self._room.acquire(timeout=_WAIT_S):
            if self._stopping.is_set():
                return
        self._loop.call_soon_threadsafe(self._act, act, arguments)

    def _act(self, act: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        try:
            act(*arguments)
        except Exception as error:
            self._failed(error)
        finally:
            self._room.release()
