"""Even loads played to a system that a viewer watches, and how late the viewer showed each event."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psutil
from load import Pace, pace, produce
from peer.events import WINDOW, Load, Present, shown_at
from peer.systems import System, Wiring
from peer.viewers import Viewers
from processes import Helper, say
from stage import PATIENCE_S, Meter, Stage

from liveboard.contract.errors import LiveboardError

_ARRIVAL_S = 60.0
_POLL_S = 0.2
# The producer connects and both systems get into their stride in the first seconds of a load, which are not counted.
UNCOUNTED_S = 2


@dataclass(frozen=True)
class Sent:
    """When each event of a load was sent, and the processors that were used meanwhile."""

    times_ns: list[int]
    cores: float
    broker_cores: float


@dataclass(frozen=True)
class Outcome:
    """What became of an even load."""

    latencies_ms: list[float]
    """In the order of the events."""
    sent: Sent


@contextmanager
def showing(kind: type[System], stage: Stage, users: int, accounts: int, rows: int = WINDOW) -> Iterator[Watched]:
    """A fresh system with the default board and so many users and accounts, as soon as a viewer shows all of them."""
    load = Present(*stage.new_topics(), users, accounts, rows=rows)
    wiring = Wiring(load.users_topic, load.accounts_topic)
    with watching(kind(stage, wiring), load, "final_ui", "accountType", users) as watched:
        yield watched


@contextmanager
def watching(
    system: System, load: Load, table: str, column: str, rows: int, order: str = "arrival"
) -> Iterator[Watched]:
    """The system, as soon as a viewer of the table shows that many rows and the load's mark in the column."""
    stage = system.stage
    produce(stage.bootstrap, load.events())
    with system.viewers() as viewers, system:
        say(f"{system.name}: starting with {load.users:,} users and {load.accounts:,} accounts")
        viewers.order("watch", PATIENCE_S, url=system.url, windows=[{"table": table, "order": order}], column=column)
        viewers.order("until", PATIENCE_S, total=rows, value=load.mark)
        system.await_following(system.wiring)
        yield Watched(system, viewers, load)
    stage.admin.delete([load.users_topic, load.accounts_topic])


@dataclass(frozen=True)
class Watched:
    """A system that a viewer watches, and the events that it gets."""

    system: System
    viewers: Viewers
    load: Load

    def play(self, first: int, rate: int, seconds: int, uncounted_s: int = UNCOUNTED_S) -> Outcome:
        """Sends events from a number on and waits until the viewer shows the last of every row."""
        count = rate * (seconds + uncounted_s)
        self.viewers.order("collect")
        sent = self.send(first, rate, count)
        rows = self.load.rows
        seen: list[tuple[str | float | None, int]] = []
        deadline = time.monotonic() + _ARRIVAL_S
        while True:
            seen += self.viewers.order("collect")["seen"][0]
            times = shown_at(seen, first, rows)
            if all(number in times for number in range(first + max(0, count - rows), first + count)):
                break
            if time.monotonic() > deadline:
                raise LiveboardError(f"{self.system.name} showed only {len(times)} of {count} events")
            self.system.check()
            time.sleep(_POLL_S)
        counted = range(rate * uncounted_s, count)
        return Outcome([(times[first + n] - sent.times_ns[n]) / 1e6 for n in counted], sent)

    def send(self, first: int, rate: int, count: int, clock: Callable[[], int] = time.monotonic_ns) -> Sent:
        """Sends so many events from a number on and does not wait for the viewer."""
        stage = self.system.stage
        system, broker = Meter(self.system.processes()), Meter([psutil.Process(stage.broker_pid)])
        began = time.monotonic()
        producer = Helper("the producer", pace, stage.bootstrap, self.load, first, count, rate, clock)
        sent: Pace = producer.result(count / rate + PATIENCE_S, self.system.check)
        elapsed = time.monotonic() - began
        return Sent(sent.sent_ns, system.used_s() / elapsed, broker.used_s() / elapsed)
