"""What one server and one viewer may have."""

from __future__ import annotations

from dataclasses import dataclass

from liveboard.config import LimitSettings
from liveboard.contract import frames
from liveboard.contract.frames import Code, FrameError

_MAX_OFFSET = 2**53


@dataclass(frozen=True, kw_only=True)
class Limits(LimitSettings):
    """What is configured, and what is not."""

    waiting: int = 1_000
    """Answers that a viewer has not read yet."""
    auth_within_s: float = frames.AUTH_WITHIN_S
    beat_every_s: float = frames.BEAT_EVERY_S


def check_window(offset: int, size: int, limits: LimitSettings) -> None:
    """Whether there can be such a window; otherwise a FrameError."""
    if not 1 <= size <= limits.window_rows:
        raise FrameError(Code.BAD_WINDOW, f"expected a size from 1 to {limits.window_rows}, found {size}")
    if not 0 <= offset <= _MAX_OFFSET:
        raise FrameError(Code.BAD_WINDOW, f"expected an offset from 0 to {_MAX_OFFSET}, found {offset}")
