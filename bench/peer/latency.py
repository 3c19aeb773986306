"""From produce() to the callback of a client with a 300-row window of the left join, on the default board."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import psutil
from load import Pace, pace, produce
from peer.events import WINDOW, Present, shown_at
from peer.figures import Figure, Target, percentile
from peer.stage import PATIENCE_S, Stage, cpu_s
from peer.systems import Deephaven, Liveboard, System, TunedDeephaven, Wiring
from peer.viewers import Viewers
from processes import Helper, say

from liveboard.errors import LiveboardError

RATES = (100, 1_000)
PERCENTILES = {"p50": 50.0, "p95": 95.0, "p99": 99.0, "p99.9": 99.9}
_SYSTEMS: tuple[type[System], ...] = (Liveboard, Deephaven, TunedDeephaven)
_TARGETS = {
    (Deephaven.name, "p50"): Target(0.05),
    (TunedDeephaven.name, "p50"): Target(0.8),
    (TunedDeephaven.name, "p99"): Target(1.0),
}
_ARRIVAL_S = 60.0
# The producer connects and both systems get into their stride in the first seconds of a load, which are not counted.
_UNCOUNTED_S = 2


@dataclass
class Played:
    """What became of an even load."""

    latencies_ms: list[float] = field(default_factory=list)
    """Sorted."""
    cores: float = 0.0
    broker_cores: float = 0.0
    late_ms: float = 0.0


Loads = dict[int, Played]
"""Rate to what became of it."""


def latency(stage: Stage) -> tuple[list[Figure], dict[str, dict[str, list[float]]]]:
    """The figures, and the whole distributions by rate and system, in milliseconds."""
    sizes = stage.sizes
    played = {
        system.name: measure(stage, system, sizes.latency_users, sizes.latency_users, RATES, sizes.latency_s)
        for system in _SYSTEMS
    }
    figures = [
        Figure(
            f"latency, {rate:,}/s, {label}, against {peer}",
            "ms",
            percentile(played[Liveboard.name][rate].latencies_ms, percent),
            percentile(played[peer][rate].latencies_ms, percent),
            _TARGETS.get((peer, label)),
        )
        for rate in RATES
        for peer in (Deephaven.name, TunedDeephaven.name)
        for label, percent in PERCENTILES.items()
    ]
    for peer in (Deephaven.name, TunedDeephaven.name):
        ours, theirs = played[Liveboard.name][RATES[-1]], played[peer][RATES[-1]]
        load = f"CPU, {RATES[-1]:,} events/s"
        figures += [
            Figure(f"{load}, against {peer}", "cores", ours.cores, theirs.cores),
            Figure(f"{load}, the broker, against {peer}", "cores", ours.broker_cores, theirs.broker_cores),
        ]
    curves = {
        f"{rate:,}/s": {name: _curve(loads[rate].latencies_ms) for name, loads in played.items()} for rate in RATES
    }
    return figures, curves


def long(stage: Stage) -> list[Figure]:
    """The tail of a load so long that what either system does every few minutes falls into it."""
    sizes, rate = stage.sizes, RATES[-1]
    ours, theirs = (
        measure(stage, system, sizes.latency_users, sizes.latency_users, (rate,), sizes.long_s)[rate].latencies_ms
        for system in (Liveboard, TunedDeephaven)
    )
    return [
        Figure(
            f"long, {rate:,}/s for {sizes.long_s} s, {label}, against {TunedDeephaven.name}",
            "ms",
            percentile(ours, percent),
            percentile(theirs, percent),
        )
        for label, percent in {**PERCENTILES, "max": 100.0}.items()
    ]


def measure(stage: Stage, kind: type[System], users: int, accounts: int, rates: Sequence[int], seconds: int) -> Loads:
    """Plays the rates to a fresh system that has so many users and accounts already."""
    topics = stage.new_topics()
    load = Present(*topics, users, accounts)
    produce(stage.bootstrap, load.events())
    system = kind(stage.bootstrap, stage.directory, Wiring(*topics, ("left", "asof")))
    loads: Loads = {}
    with system.viewers() as viewers, system:
        say(f"{kind.name}: starting with {users:,} users and {accounts:,} accounts")
        viewers.order("watch", PATIENCE_S, url=system.url, windows=[{"table": "final_ui"}], column="accountType")
        viewers.order("until", PATIENCE_S, total=load.users, value=load.mark)
        warm_up_s = stage.sizes.warm_up_s
        say(f"{kind.name}: warming up for {warm_up_s} s")
        play(stage, system, viewers, load, 0, max(rates), warm_up_s)
        for number, rate in enumerate(rates, 1):
            say(f"{kind.name}: {rate:,} events/s for {seconds} s")
            loads[rate] = play(stage, system, viewers, load, number * 1_000_000, rate, seconds)
    stage.delete(topics)
    return loads


def play(stage: Stage, system: System, viewers: Viewers, load: Present, first: int, rate: int, seconds: int) -> Played:
    """Plays events from a number on to a viewer that watches, and waits until it shows the last of every row."""
    count, uncounted = rate * (seconds + _UNCOUNTED_S), rate * _UNCOUNTED_S
    viewers.order("collect")
    processes = system.processes()
    before, broker_before, began = cpu_s(processes), cpu_s(stage.broker), time.monotonic()
    producer = Helper("the producer", pace, stage.bootstrap, load, first, count, rate, time.monotonic_ns)
    sent: Pace = producer.result(seconds + PATIENCE_S, system.check)
    elapsed = time.monotonic() - began
    used, broker_used = cpu_s(processes) - before, cpu_s(stage.broker) - broker_before
    seen: list[tuple[str | None, int]] = []
    deadline = time.monotonic() + _ARRIVAL_S
    while True:
        seen += viewers.order("collect")["seen"][0]
        times = shown_at(seen, first)
        if all(number in times for number in range(first + max(0, count - WINDOW), first + count)):
            break
        if time.monotonic() > deadline:
            raise LiveboardError(f"{system.name} showed only {len(times)} of {count} events")
        system.check()
        time.sleep(0.2)
    latencies = sorted((times[first + n] - sent.sent_ns[n]) / 1e6 for n in range(uncounted, count))
    return Played(latencies, used / elapsed, broker_used / elapsed, sent.late_s * 1e3)


def broker_processes() -> tuple[psutil.Process, ...]:
    """The Java that this process has started."""
    return tuple(child for child in psutil.Process().children() if "java" in child.name())


def _curve(ordered: list[float]) -> list[float]:
    """101 quantiles up to the median's tail, then finer ones: p0 … p99, p99.1 … p100."""
    percents = [*range(100), *(99 + tenth / 10 for tenth in range(1, 11))]
    return [float(f"{percentile(ordered, percent):.4g}") for percent in percents]
