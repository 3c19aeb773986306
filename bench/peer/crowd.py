"""Many viewers at 200 changes a second: how late the changes are, and what they cost the servers."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

from load import pace, produce
from peer.events import Present, shown_at
from peer.figures import Figure, Target, percentile
from peer.stage import PATIENCE_S, Stage, cpu_s
from peer.systems import Deephaven, Liveboard, System, TunedDeephaven, Wiring
from processes import Helper, say

_RATE = 200
_TIMED = 10
"""So many viewers keep times, in a process of their own, which the others do not slow down."""
_UNCOUNTED_S = 2
_SETTLE_S = 5.0
_MOST_VIEWERS = 1_000


class Crowd(NamedTuple):
    """Viewers and their windows, the first of which is that of those who keep times."""

    name: str
    viewers: int
    windows: list[dict[str, Any]]


def crowd(stage: Stage) -> list[Figure]:
    """Viewers of the same window, then of a hundred different ones."""
    figures: list[Figure] = []
    crowds = [Crowd(f"{count:,} of the same window", count, [{"table": "final_ui"}]) for count in stage.sizes.viewers]
    # The largest comes last, so that no other finds a system that has not got over it yet.
    crowds.insert(-1, Crowd("100 of different windows", 100, different(stage.sizes.latency_users)))
    found = {kind.name: _measure(stage, kind, crowds) for kind in (Liveboard, Deephaven, TunedDeephaven)}
    for name, count, _ in crowds:
        many = count >= _MOST_VIEWERS
        for peer in (Deephaven.name, TunedDeephaven.name):
            (late, busy), (peer_late, peer_busy) = found[Liveboard.name][name], found[peer][name]
            at_most = (Target(100, of_ratio=False), Target(1, of_ratio=False)) if many else (None, None)
            figures += [
                Figure(f"viewers, {name}, p99, against {peer}", "ms", late, peer_late, at_most[0]),
                Figure(f"viewers, {name}, server CPU, against {peer}", "cores", busy, peer_busy, at_most[1]),
            ]
    return figures


def different(users: int) -> list[dict[str, Any]]:
    """A hundred windows: pages of the table's own order, sorts and filters; the first is that of the timed ones."""
    pages = [{"table": "final_ui", "offset": number * users // 40} for number in range(34)]
    sorts = [
        {"table": "final_ui", "sort": [["balance", ("asc", "desc")[number % 2]]], "offset": number * users // 80}
        for number in range(33)
    ]
    filters = [{"table": "final_ui", "filter": [["balance", ">", number * 50]]} for number in range(33)]
    return [*pages, *sorts, *filters]


def _measure(stage: Stage, kind: type[System], crowds: list[Crowd]) -> dict[str, tuple[float, float]]:
    """By crowd: the p99 in milliseconds at the timed viewers, and the cores of the system."""
    topics = stage.new_topics()
    load = Present(*topics, stage.sizes.latency_users, stage.sizes.latency_users)
    produce(stage.bootstrap, load.events())
    found: dict[str, tuple[float, float]] = {}
    with kind(stage.bootstrap, stage.directory, Wiring(*topics, ("left", "asof"))) as system:
        for number, crowd in enumerate(crowds):
            found[crowd.name] = _watched(stage, system, load, crowd, number * 2_000_000)
    stage.delete(topics)
    return found


def _watched(stage: Stage, system: System, load: Present, crowd: Crowd, first: int) -> tuple[float, float]:
    """A crowd that comes, warms the system up, watches the first window and goes; events are numbered from `first`."""
    name, count, windows = crowd
    timed = min(count, _TIMED)
    with system.viewers() as watching, system.viewers() as others:
        say(f"viewers, {name}, {system.name}: connecting")
        orders = {"url": system.url, "column": "accountType"}
        watching.order("watch", PATIENCE_S, **orders, windows=windows[:1], count=timed, timed=timed)
        if first == 0:
            watching.order("until", PATIENCE_S, total=load.users, value=load.mark)
        if count > timed:
            rest = windows[1:] or windows
            others.order("watch", PATIENCE_S, **orders, windows=rest, count=count - timed, timed=0)
        _play(stage, system, load, first, stage.sizes.warm_up_s)
        time.sleep(_SETTLE_S)
        watching.order("collect")
        say(f"viewers, {name}, {system.name}: {_RATE} changes/s for {stage.sizes.crowd_s} s")
        first += 1_000_000
        sent, cores = _play(stage, system, load, first, stage.sizes.crowd_s)
        time.sleep(_SETTLE_S)
        seen = watching.order("collect", PATIENCE_S)["seen"]
        for viewers in (watching, others):
            viewers.order("close", PATIENCE_S)
        time.sleep(_SETTLE_S)
    latencies: list[float] = []
    for each in seen:
        times = shown_at(each, first)
        counted = range(_UNCOUNTED_S * _RATE, len(sent))
        # What was never shown in the time that was given counts as shown at its end.
        latencies += [(times.get(first + n, sent[-1] + int(_SETTLE_S * 1e9)) - sent[n]) / 1e6 for n in counted]
    return percentile(sorted(latencies), 99), cores


def _play(stage: Stage, system: System, load: Present, first: int, seconds: int) -> tuple[list[int], float]:
    processes = system.processes()
    before, began = cpu_s(processes), time.monotonic()
    count = _RATE * (seconds + _UNCOUNTED_S)
    producer = Helper("the producer", pace, stage.bootstrap, load, first, count, _RATE, time.monotonic_ns)
    sent = producer.result(seconds + PATIENCE_S, system.check)
    return sent.sent_ns, (cpu_s(processes) - before) / (time.monotonic() - began)
