"""Whether viewers find every table at a server: `/readyz` and the metric `liveboard_ready` tell the same."""

from __future__ import annotations

from liveboard.serving.catalogue import Catalogue
from liveboard.serving.feed_health import FeedHealth
from liveboard.serving.sql_views import SqlViews


class Readiness:
    """Looks whenever it is asked, in the event loop."""

    def __init__(self, catalogue: Catalogue, health: FeedHealth, sql: SqlViews) -> None:
        self._catalogue = catalogue
        self._health = health
        self._sql = sql

    @property
    def live(self) -> str | None:
        """The live generation."""
        return self._catalogue.live

    @property
    def outage(self) -> str:
        """Why Kafka does not answer; empty where it does."""
        return self._health.outage

    @property
    def lacking(self) -> str:
        """What viewers would miss here, in a sentence; empty where they find every table."""
        catalogue, health = self._catalogue, self._health
        if health.errors:
            return "; ".join(health.errors)
        if catalogue.status is None or (health.outage and not catalogue.is_ready):
            return health.outage or "expected the board's status, found none in Kafka yet"
        if not catalogue.is_ready:
            shown = catalogue.status.shown if catalogue.status.live else None
            waiting = f"loading generation {shown}" if shown else f"{catalogue.status.phase}: nothing is live yet"
            return f"expected the live generation, found: {waiting}"
        missing = [*catalogue.missing, *self._sql.missing]
        return f"expected every table, found: loading {', '.join(missing)}" if missing else ""
