"""From produce() to the callback of a client with a 300-row window of the left join, on the default board."""

from __future__ import annotations

from collections.abc import Sequence

from peer.systems import Deephaven, Liveboard, System, TunedDeephaven
from peer.watching import Outcome, Watched, showing
from processes import say
from report import Figure, Target, percentile
from stage import Extra, Stage

RATES = (100, 1_000)
PERCENTILES = {"p50": 50.0, "p95": 95.0, "p99": 99.0, "p99.9": 99.9}
_SYSTEMS: tuple[type[System], ...] = (Liveboard, Deephaven, TunedDeephaven)
_PEERS = (Deephaven.name, TunedDeephaven.name)
_TARGETS = {
    (Deephaven.name, "p50"): Target(0.05, of_ratio=True),
    (TunedDeephaven.name, "p50"): Target(0.8, of_ratio=True),
    (TunedDeephaven.name, "p99"): Target(1, of_ratio=True),
    (TunedDeephaven.name, "p99.9"): Target(1, of_ratio=True),
}
_PROCESSOR = {TunedDeephaven.name: Target(2, of_ratio=True)}
# Of the curves, which are finer in the tail.
_PERCENTS = [*range(100), *(99 + tenth / 10 for tenth in range(1, 11))]

# How many parts of the long load are looked at, each for itself.
_PARTS = 11
# On either side of the slowest event.
_STOP_S = 2

Loads = dict[int, Outcome]
"""Rate to what became of it."""


def latency(stage: Stage) -> tuple[list[Figure], Extra]:
    """The figures, and the whole distributions by rate and system, in milliseconds."""
    sizes = stage.sizes
    found = {
        system.name: measure(stage, system, sizes.latency_users, sizes.latency_users, RATES, sizes.seconds)
        for system in _SYSTEMS
    }
    figures = [
        Figure(
            f"latency, {rate:,}/s, {label}, against {peer}",
            "ms",
            percentile(found[Liveboard.name][rate].latencies_ms, percent),
            percentile(found[peer][rate].latencies_ms, percent),
            _TARGETS.get((peer, label)),
        )
        for rate in RATES
        for peer in _PEERS
        for label, percent in PERCENTILES.items()
    ]
    for peer in _PEERS:
        ours, theirs = found[Liveboard.name][RATES[-1]].sent, found[peer][RATES[-1]].sent
        load = f"CPU, {RATES[-1]:,} events/s"
        figures += [
            Figure(f"{load}, against {peer}", "cores", ours.cores, theirs.cores, _PROCESSOR.get(peer)),
            Figure(f"{load}, the broker, against {peer}", "cores", ours.broker_cores, theirs.broker_cores),
        ]
    curves = {
        f"{rate:,}/s": {name: _curve(loads[rate].latencies_ms) for name, loads in found.items()} for rate in RATES
    }
    return figures, {"percents": _PERCENTS, "curves": curves}


def long(stage: Stage) -> tuple[list[Figure], Extra]:
    """The tail of a load so long that what either system does every few minutes falls into it, and its tail by time."""
    sizes, rate = stage.sizes, RATES[-1]
    ours, theirs = (
        measure(stage, system, sizes.latency_users, sizes.latency_users, (rate,), sizes.long_s)[rate].latencies_ms
        for system in (Liveboard, TunedDeephaven)
    )
    load = f"long, {rate:,}/s for {sizes.long_s} s"
    figures = [
        Figure(
            f"{load}, {label}, against {TunedDeephaven.name}",
            "ms",
            percentile(ours, percent),
            percentile(theirs, percent),
        )
        for label, percent in {**PERCENTILES, "max": 100.0}.items()
    ]
    calm, their_calm = (without_longest_stop(each, rate) for each in (ours, theirs))
    figures += [
        Figure(
            f"{load}, without the longest stop of each, {label}, against {TunedDeephaven.name}",
            "ms",
            percentile(calm, PERCENTILES[label]),
            percentile(their_calm, PERCENTILES[label]),
            Target(1, of_ratio=True),
        )
        for label in ("p95", "p99")
    ]
    parts = {Liveboard.name: _by_part(ours), TunedDeephaven.name: _by_part(theirs)}
    return figures, {"parts": _PARTS, "by_part": parts}


def without_longest_stop(latencies_ms: Sequence[float], rate: int) -> list[float]:
    """All but the events of the seconds around the slowest one, in which everything waited for what it waited for."""
    worst = max(range(len(latencies_ms)), key=latencies_ms.__getitem__)
    around = rate * _STOP_S
    return [*latencies_ms[: max(0, worst - around)], *latencies_ms[worst + around :]]


def _by_part(latencies_ms: Sequence[float]) -> dict[str, list[float]]:
    """p50, p95 and p99 of each part of the load, in order: they show whether it grows slower."""
    size = len(latencies_ms) // _PARTS
    parts = [latencies_ms[number * size : (number + 1) * size] for number in range(_PARTS)]
    labels = ("p50", "p95", "p99")
    return {label: [float(f"{percentile(part, PERCENTILES[label]):.4g}") for part in parts] for label in labels}


def measure(stage: Stage, kind: type[System], users: int, accounts: int, rates: Sequence[int], seconds: int) -> Loads:
    """Plays the rates to a fresh system that has so many users and accounts already."""
    with showing(kind, stage, users, accounts) as watched:
        return played(watched, rates, seconds)


def played(watched: Watched, rates: Sequence[int], seconds: int) -> Loads:
    """Plays the rates one after the other, and something before to warm up."""
    loads: Loads = {}
    name, warm_up_s = watched.system.name, watched.system.stage.sizes.warm_up_s
    say(f"{name}: warming up for {warm_up_s} s")
    watched.play(0, max(rates), warm_up_s)
    for number, rate in enumerate(rates, 1):
        say(f"{name}: {rate:,} events/s for {seconds} s")
        loads[rate] = watched.play(number * 1_000_000, rate, seconds)
    return loads


def _curve(latencies_ms: list[float]) -> list[float]:
    return [float(f"{percentile(latencies_ms, percent):.4g}") for percent in _PERCENTS]
