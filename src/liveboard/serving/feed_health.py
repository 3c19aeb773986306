"""What keeps a server's tables from being up to date."""

from __future__ import annotations

import logging

_log = logging.getLogger(__name__)


class FeedHealth:
    """Three things that can be wrong, each in sentences for people. Written by the feed, read by everyone."""

    def __init__(self) -> None:
        self.refusals: dict[str, str] = {}
        """What Kafka does not let the server read, by topic, for as long as it does not."""
        self.outage = ""
        """Why Kafka does not answer, when nothing has been heard for a while; empty when it does."""
        self.out_since = 0.0
        """Since when it does not, in seconds since 1970."""
        self.crash = ""
        """Which error of its own has ended the feed: whoever runs it then ends the process. Empty while it runs."""

    @property
    def errors(self) -> list[str]:
        """What somebody has to mend: refusals and a crash. An outage is waited for."""
        return [*self.refusals.values(), *([self.crash] if self.crash else [])]

    def refused(self, topic: str, reason: str) -> None:
        """Kafka does not let the topic be read."""
        refusal = f"cannot read {topic}: {reason}"
        if self.refusals.get(topic) != refusal:
            _log.error("refused", extra={"topic": topic, "reason": reason})
        self.refusals[topic] = refusal

    def allowed(self, topic: str) -> None:
        """Kafka lets the topic be read, or nobody wants to any more."""
        self.refusals.pop(topic, None)

    def unanswered(self, reason: str, now_s: float) -> None:
        """Kafka does not answer."""
        if not self.outage:
            self.out_since = now_s
        if reason != self.outage:
            _log.error("kafka unavailable", extra={"reason": reason})
        self.outage = reason

    def answered(self) -> None:
        """Kafka answers."""
        self.outage = ""

    def crashed(self, error: Exception) -> None:
        """The feed has failed with an error of its own."""
        _log.error("feed failed", exc_info=error)
        self.crash = (
            f"the server cannot keep its tables up to date after an error of its own ({type(error).__name__}), which "
            "the log has; start it again"
        )
