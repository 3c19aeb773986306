"""Evaluates the alerts of a board, in one place: with its owner, in a thread of its own.

It reads the changelogs of the live generation as every reader does. What it remembers is the alerts topic. So it can
end at any moment: the next one reads the topic and the tables, and tells the differences.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from confluent_kafka import KafkaException

from liveboard.alerts.delivery import Deliveries
from liveboard.alerts.following import WatchedTables
from liveboard.alerts.memory import AlertMemory, create_topics, now_ms
from liveboard.alerts.settling import QUIET_S, Settling
from liveboard.alerts.watch import AlertChange, Watch
from liveboard.backoff import Backoff
from liveboard.config.board import BoardSettings
from liveboard.contract.errors import LiveboardError
from liveboard.contract.names import Names
from liveboard.contract.status import AlertFigures, BoardStatus, GenerationRecord
from liveboard.kafka.admin import Admin

_WAIT_S = 0.1
_FORGET_S = 60.0

Log = Callable[[str], None]


class Evaluator:
    """Raises and clears the alerts of a board until it is told to stop; what fails is tried again.

    `status` gives the board's newest document, `starts` how often a generation's stream was started, `is_seen` whether
    it runs since then, and `is_sure` whether nobody else can keep the board now; an error of its own ends the work.
    """

    def __init__(
        self,
        board: BoardSettings,
        names: Names,
        client_config: Mapping[str, str],
        status: Callable[[], BoardStatus | None],
        log: Log,
        *,
        starts: Callable[[str], int] = lambda _: 1,
        is_seen: Callable[[str], bool] = lambda _: True,
        is_sure: Callable[[], bool] = lambda: True,
        ends_with: type[Exception] | tuple[()] = (),
        quiet_s: float = QUIET_S,
    ) -> None:
        self._alerts = tuple(board.alerts.values())
        self._sources = tuple(source.table for source in board.sources.values())
        self._names = names
        self._client_config = client_config
        self._status = status
        self._log = log
        self._starts = starts
        self._is_seen = is_seen
        self._is_sure = is_sure
        self._ends_with = ends_with
        self._quiet_s = quiet_s
        self._problem = ""
        self._live: str | None = None
        """The generation that was live last; empty where there was none, None before we looked."""
        self._raises: dict[str, int] = {}
        self._clears: dict[str, int] = {}
        self._memory: AlertMemory | None = None
        self._deliveries: Deliveries | None = None

    @property
    def figures(self) -> dict[str, AlertFigures]:
        """How each alert is doing."""
        raised = self._memory.figures if self._memory else {}
        told = self._deliveries.all if self._deliveries else []
        return {
            alert.name: AlertFigures(
                raised=raised.get(alert.name, 0),
                raises=self._raises.get(alert.name, 0),
                clears=self._clears.get(alert.name, 0),
                failures=sum(each.failures for each in told if each.alert == alert.name),
                problem=self._problem
                or next((each.problem for each in told if each.alert == alert.name and each.problem), ""),
            )
            for alert in self._alerts
        }

    def run(self, stopping: threading.Event) -> None:
        """Works until `stopping` is set."""
        backoff = Backoff()
        while not stopping.is_set():
            try:
                self._work(stopping)
            except self._ends_with:
                return
            except Exception as error:
                # Whatever it is, the tables go on without.
                known = isinstance(error, LiveboardError | KafkaException)
                why = f"alerts are not evaluated: {error if known else repr(error)}"
                if why != self._problem:
                    self._log(f"{why}; trying again")
                self._problem = why
                stopping.wait(backoff.failed())

    def _work(self, stopping: threading.Event) -> None:
        admin = Admin(self._client_config)
        create_topics(admin, self._names)
        memory = AlertMemory(self._client_config, self._names, admin)
        with Deliveries(self._client_config, self._names, admin, self._alerts, self._log) as deliveries:
            self._memory, self._deliveries = memory, deliveries
            memory.mend_table({alert.name: alert.table for alert in self._alerts})
            self._clear_strangers(memory)
            since: dict[str, dict[str, int]] = {}
            while not stopping.is_set():
                status = self._status()
                live = (status.live if status else None) or ""
                if status is None or live not in status.generations:
                    self._live = ""
                    stopping.wait(_WAIT_S)
                    continue
                following = self._following(live, status.generations[live], memory, admin, since)
                try:
                    self._follow(following, memory, stopping)
                finally:
                    following.close()
                since = {watch.name: watch.since for watch in following.watches}

    def _following(
        self,
        live: str,
        record: GenerationRecord,
        memory: AlertMemory,
        admin: Admin,
        since: Mapping[str, Mapping[str, int]],
    ) -> WatchedTables:
        watches = [
            Watch(alert, record.tables[alert.table], memory.of(alert.name), now_ms, since.get(alert.name))
            for alert in self._alerts
            if alert.table in record.tables
        ]
        return WatchedTables(self._client_config, self._names, admin, live, record, watches, self._sources)

    def _follow(self, following: WatchedTables, memory: AlertMemory, stopping: threading.Event) -> None:
        """Until another generation is live."""
        live, forget = following.generation, Backoff(_FORGET_S, _FORGET_S)
        # A generation that became live while we looked writes nothing once more, until its stream is started again.
        start = self._start(live) if self._live not in (None, live) else (0, False)
        self._live = live
        while not stopping.is_set() and (status := self._status()) is not None and status.live == live:
            if (now := self._start(live)) != start:
                # When it is started, nothing counts any more. How long it is quiet is counted from when it runs.
                start = now
                following.settle_anew(Settling(self._sources, now_ms(), self._quiet_s))
            self.tell(following.read(may_settle=all(start)))
            if self._problem and following.is_settled:
                self._log("alerts are evaluated again")
                self._problem = ""
            if forget.over:
                memory.forget_old(now_ms(), self._is_sure)
                forget.failed()

    def _start(self, live: str) -> tuple[int, bool]:
        """Which start of the stream it is, and whether the stream runs since then."""
        return self._starts(live), self._is_seen(live)

    def tell(self, changes: list[AlertChange]) -> None:
        """Writes the changes and counts them."""
        if not changes or not self._memory:
            return
        self._memory.write(changes, self._is_sure)
        for change in changes:
            counts = self._raises if change.state == "raised" else self._clears
            counts[change.alert] = counts.get(change.alert, 0) + 1

    def _clear_strangers(self, memory: AlertMemory) -> None:
        """Clears what was raised by alerts that are not configured any more."""
        known, now = {alert.name for alert in self._alerts}, now_ms()
        self.tell(
            [
                AlertChange(alert, "", key, "cleared", now, now, None)
                for alert, keys in memory.raised.items()
                if alert not in known
                for key in sorted(keys)
            ]
        )
