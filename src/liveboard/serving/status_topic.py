"""What has been read of the status topic."""

from __future__ import annotations

import logging

from liveboard.contract.changelog import TS_AT, timestamp_text
from liveboard.contract.errors import LiveboardError
from liveboard.contract.status import (
    BEAT_S,
    STALE_AFTER_S,
    BoardStatus,
    Phase,
    back_again,
    cut_off,
    decode_status,
    gone_stale,
)

# The document comes more often than this: whoever hears nothing for longer may be cut off.
DOUBT_AFTER_S = BEAT_S + 2.0
# A pipeline that is back and writes nothing for so long has nothing to catch up with.
CAUGHT_UP_AFTER_S = 5.0
_STANDING_STILL = (Phase.STARTING, Phase.RESTARTING, Phase.STALE, Phase.AWAY)

_log = logging.getLogger(__name__)


class StatusTopic:
    """The newest status of the board, and what is shown of it once nobody keeps it any more."""

    def __init__(self) -> None:
        self.position = 0
        self.end: int | None = None
        """Where the topic ended when it was first asked; None until it is."""
        self._unread: bytes | None = None
        self._kept_ms = 0
        self._heard_s = 0.0
        self._newest: BoardStatus | None = None
        self._shown: BoardStatus | None = None
        self._back_at = b""
        """Since when the pipeline is back, as rows have it, until it has caught up; else empty."""
        self._wrote_s = 0.0

    def take(self, value: bytes | None, offset: int, kept_ms: int, now_s: float = 0.0) -> None:
        """A record of the topic, when Kafka got it, and when it came here."""
        self._unread, self.position, self._kept_ms, self._heard_s = value, offset + 1, kept_ms, now_s

    def news(self) -> BoardStatus | None:
        """The newest status, once the topic is read to its end; None when there is none since the last time."""
        if self._unread is None or self.end is None or self.position < self.end:
            return None
        value, self._unread = self._unread, None
        try:
            status = decode_status(value)
        except LiveboardError as error:
            _log.error("status that cannot be read", extra={"reason": str(error)})
            return None
        if not status.follows(self._newest):
            return None
        self._newest = status
        return self._show(status, self._kept_ms, self._heard_s)

    def _show(self, status: BoardStatus, since_ms: int, now_s: float) -> BoardStatus:
        is_live = status.phase is Phase.LIVE
        if is_live and self._shown is not None and self._shown.phase in _STANDING_STILL:
            self._back_at, self._wrote_s = timestamp_text(since_ms).encode(), now_s
        elif not is_live:
            self._back_at = b""
        self._shown = back_again(status) if self._back_at else status
        return self._shown

    def wrote(self, row: bytes | None, now_s: float) -> None:
        """The pipeline has written a row: one of a record that came after it was back means that it has caught up."""
        self._wrote_s = now_s
        if row is not None and row[TS_AT] >= self._back_at:
            self._back_at = b""

    def caught_up(self, now_s: float) -> BoardStatus | None:
        """What to show when a pipeline that was behind is behind no more; None when it still is, or was not."""
        if self._shown is None or self._newest is None or self._shown.phase is not Phase.CATCHING_UP:
            return None
        if self._shown is self._newest:
            # The pipeline says so itself: of a swap.
            return None
        if self._back_at and now_s - self._wrote_s < CAUGHT_UP_AFTER_S:
            return None
        self._back_at, self._shown = b"", self._newest
        return self._shown

    def is_silent(self, now_s: float) -> bool:
        """Whether there is a status that nobody has kept for a while; the time is in seconds since 1970."""
        # How old one is that was there before, only the clock of another machine can say.
        is_heard = self.end is not None and self.position > self.end
        kept_s = self._heard_s if is_heard else self._kept_ms / 1000
        return self._newest is not None and now_s - kept_s > STALE_AFTER_S

    def is_doubtful(self, now_s: float) -> bool:
        """Whether so little is heard that Kafka itself may be away."""
        return self.end is None or now_s - self._heard_s > DOUBT_AFTER_S

    def away(self, since_s: float, why: str) -> BoardStatus | None:
        """What to show while Kafka does not answer; None when this is shown already, for the same reason."""
        away = cut_off(self._newest, int(since_s * 1000), why)
        if away == self._shown:
            return None
        self._shown = away
        return away

    def back(self, now_s: float) -> BoardStatus | None:
        """What to show when Kafka answers again and no newer status has come: the last one, or that there is none."""
        if self._shown is None or self._shown.phase is not Phase.AWAY:
            return None
        last = self._newest or BoardStatus(sources=(), message="waiting for the pipeline to start")
        return self._show(last, int(now_s * 1000), now_s)

    def stale(self, now_s: float, why: str) -> BoardStatus | None:
        """What to show in place of a status that nobody keeps; None when it is kept, or this is shown already."""
        if self._newest is None or not self.is_silent(now_s):
            return None
        stale = gone_stale(self._newest, self._kept_ms, why)
        if stale == self._shown:
            return None
        self._shown = stale
        return stale
