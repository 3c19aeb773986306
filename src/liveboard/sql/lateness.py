"""When a statement has had its time: by the processor, since on a busy machine it waits more than it works."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

# It may take so many times as long as the processor works for it.
_WAITING = 10
_LEAST_S = 0.01


def is_late(done: threading.Event, seconds: float, worked_s: Callable[[], float]) -> bool:
    """Waits until it is done, or has had its seconds of the processor, which is late."""
    began, until = worked_s(), time.monotonic() + seconds * _WAITING
    left = seconds
    while not done.wait(max(left, _LEAST_S)):
        left = min(began + seconds - worked_s(), until - time.monotonic())
        if left <= 0:
            return True
    return False
