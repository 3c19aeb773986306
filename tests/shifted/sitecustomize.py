"""Python imports this at its start, where it is on the path: the time of day is as much off as a file says."""

from __future__ import annotations

import os
import time
from pathlib import Path

_FILE = Path(os.environ["TESTS_CLOCK_FILE"])
_LOOK_S = 0.1
_real, _real_ns = time.time, time.time_ns
_looked, _off_s = 0.0, 0


def _off() -> int:
    global _looked, _off_s
    if time.monotonic() - _looked > _LOOK_S:
        # Empty for the moment in which it is written.
        _looked, _off_s = time.monotonic(), int(_FILE.read_text() or _off_s)
    return _off_s


time.time = lambda: _real() + _off()
time.time_ns = lambda: _real_ns() + _off() * 1_000_000_000
