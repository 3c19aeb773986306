"""What Prometheus is told."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from time import time
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from liveboard.contract.changelog import TS_AT
from liveboard.contract.names import REJECTS_TABLE, generation_number
from liveboard.contract.status import State

if TYPE_CHECKING:
    from liveboard.serving.catalogue import Catalogue
    from liveboard.serving.feed import Feed
    from liveboard.serving.hub import Hub
    from liveboard.serving.readiness import Readiness
    from liveboard.serving.sql_views import SqlViews
    from liveboard.serving.views import Views

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_BUCKETS = (0.001, 0.002, 0.003, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class Counters:
    """What is counted as it happens."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self._latency = Histogram(
            "liveboard_latency_seconds",
            "From the Kafka timestamp of a new row's event to its sending to the first viewer",
            ["table"],
            buckets=_BUCKETS,
            registry=self.registry,
        )
        self._conflations = Counter(
            "liveboard_conflations",
            "Frames that held several changes because the viewer or the server did not keep up",
            ["table"],
            registry=self.registry,
        )
        self._refused = Counter(
            "liveboard_refused_viewers", "Connections without the right key or origin", registry=self.registry
        )
        self._slowed = Counter(
            "liveboard_slowed_logins",
            "Keys that were not looked at, because too many wrong ones had come from the address",
            registry=self.registry,
        )
        self._statements = Counter(
            "liveboard_statements",
            "SQL that was answered, or why not, by kind: view or query",
            ["kind", "outcome"],
            registry=self.registry,
        )
        self._statement_seconds = Counter(
            "liveboard_statement_seconds", "What the answers took", ["kind"], registry=self.registry
        )

    def answered(self, kind: str, outcome: str, seconds: float = 0.0) -> None:
        """A statement was answered, or refused."""
        self._statements.labels(kind, outcome).inc()
        self._statement_seconds.labels(kind).inc(seconds)

    def sent(self, table: str, row: bytes) -> None:
        """A new row was sent to its first viewer."""
        try:
            event_s = datetime.fromisoformat(row[TS_AT].decode()).timestamp()
        except ValueError:
            return  # a table without ts
        self._latency.labels(table).observe(max(0.0, time() - event_s))

    def conflated(self, table: str) -> None:
        """A viewer was sent several changes in one."""
        self._conflations.labels(table).inc()

    def refused(self) -> None:
        """A connection did not have the key."""
        self._refused.inc()

    def slowed(self) -> None:
        """An address has to wait before its next try."""
        self._slowed.inc()

    def text(self) -> bytes:
        """All metrics as Prometheus reads them."""
        return generate_latest(self.registry)


class Gauges(Collector):
    """What is looked at when Prometheus asks."""

    def __init__(
        self, catalogue: Catalogue, hub: Hub, views: Views, feed: Feed, sql: SqlViews, readiness: Readiness
    ) -> None:
        self._catalogue = catalogue
        self._hub = hub
        self._views = views
        self._feed = feed
        self._sql = sql
        self._readiness = readiness

    def collect(self) -> Iterator[Metric]:
        """The state as of now."""
        yield from self._tables()
        yield from self._board()
        yield from self._alerts()
        behind = GaugeMetricFamily(
            "liveboard_view_lag_seconds",
            "How old the first change is that a watched view does not have",
            labels=("view",),
        )
        for name, lag in self._sql.lags().items():
            behind.add_metric((name,), lag)
        yield behind
        yield GaugeMetricFamily("liveboard_viewers", "Connections with the key", len(self._hub.viewers))
        yield GaugeMetricFamily("liveboard_subscriptions", "Of all viewers", self._hub.subscriptions)
        yield GaugeMetricFamily("liveboard_windows", "Different windows that are open", self._views.windows)
        yield GaugeMetricFamily("liveboard_mirrors", "Tables that are kept for sorting too", self._views.mirrors)

    def _tables(self) -> Iterator[Metric]:
        labels = ("table", "generation")
        rows = GaugeMetricFamily("liveboard_rows", "Rows of a table", labels=labels)
        updates = CounterMetricFamily("liveboard_updates", "Rows that came or changed", labels=labels)
        evicted = CounterMetricFamily("liveboard_evicted_rows", "Rows that server.max_rows took out", labels=labels)
        for table in self._catalogue:
            at = (table.name, table.generation or "")
            rows.add_metric(at, len(table))
            updates.add_metric(at, table.updates)
            evicted.add_metric(at, table.evicted)
        lag = GaugeMetricFamily("liveboard_feed_lag", "Changelog records that are not read yet", labels=labels)
        for (generation, name), records in self._feed.lags.items():
            lag.add_metric((name, generation or ""), records)
        yield from (rows, updates, evicted, lag)

    def _board(self) -> Iterator[Metric]:
        catalogue = self._catalogue
        live = generation_number(catalogue.live) if catalogue.live else 0
        yield GaugeMetricFamily("liveboard_generation", "The number of the generation that names mean; 0: none", live)
        is_ready = not self._readiness.lacking
        yield GaugeMetricFamily("liveboard_ready", "Whether every table is there, as /readyz says", float(is_ready))
        rejects = sum(len(table) for table in catalogue.named() if table.name == REJECTS_TABLE)
        yield GaugeMetricFamily("liveboard_rejects", "Records of the live generation that could not be read", rejects)
        labels = ("generation",)
        progress = GaugeMetricFamily("liveboard_build_progress", "How far a build is, 0 to 1", labels=labels)
        keys = GaugeMetricFamily("liveboard_pending_repairs", "Keys whose rows wait for a repair", labels=labels)
        age = GaugeMetricFamily("liveboard_pending_repairs_age_seconds", "How long the first one waits", labels=labels)
        lost = GaugeMetricFamily(
            "liveboard_lost_records", "Records that Kafka deleted before they were read", labels=("generation", "topic")
        )
        for name, record in (catalogue.status.generations if catalogue.status else {}).items():
            if record.state is State.BUILDING and record.progress:
                progress.add_metric((name,), record.progress.percent / 100)
            if record.state in (State.LIVE, State.RETIRING):
                keys.add_metric((name,), record.repairs.keys if record.repairs else 0)
                age.add_metric((name,), max(0.0, time() - record.repairs.since) if record.repairs else 0)
                by_topic = dict.fromkeys(record.starting_offsets, 0)
                for each in record.lost.values():
                    by_topic[each.topic] = by_topic.get(each.topic, 0) + each.records
                for topic, records in by_topic.items():
                    lost.add_metric((name, topic), records)
        yield from (progress, keys, age, lost)

    def _alerts(self) -> Iterator[Metric]:
        labels = ("alert",)
        raised = GaugeMetricFamily("liveboard_alerts", "Rows that an alert is raised for now", labels=labels)
        raises = CounterMetricFamily("liveboard_alerts_raised", "Since the pipeline's start", labels=labels)
        clears = CounterMetricFamily("liveboard_alerts_cleared", "Since the pipeline's start", labels=labels)
        failures = CounterMetricFamily(
            "liveboard_alert_delivery_failures", "Tries to tell a receiver that failed", labels=labels
        )
        status = self._catalogue.status
        for name, figures in (status.alerts if status else {}).items():
            raised.add_metric((name,), figures.raised)
            raises.add_metric((name,), figures.raises)
            clears.add_metric((name,), figures.clears)
            failures.add_metric((name,), figures.failures)
        yield from (raised, raises, clears, failures)
