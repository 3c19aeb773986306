"""Many viewers at 200 changes a second: how late the changes are, and what they cost the servers."""

from __future__ import annotations

import time
from contextlib import ExitStack
from itertools import cycle, islice
from math import ceil
from typing import Any, NamedTuple

from peer.events import shown_at
from peer.systems import Deephaven, Liveboard, System, TunedDeephaven
from peer.watching import UNCOUNTED_S, Watched, showing
from processes import say
from report import Figure, Target, percentile
from stage import PATIENCE_S, Stage

_RATE = 200
_TIMED = 10
"""So many viewers keep times, in a process of their own, which the others do not slow down."""
_VIEWERS_A_PROCESS = 50
"""So many of the others share a process at most: a hundred of Deephaven's clients, tuned, are too many for one Node."""
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
            at_most = (Target(100), Target(1)) if many else (None, None)
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


def spread(windows: list[dict[str, Any]], viewers: int) -> list[list[dict[str, Any]]]:
    """The windows of so many viewers, one for each, by process: all windows in turn, and every kind in each process."""
    of_each = list(islice(cycle(windows), viewers))
    processes = ceil(viewers / _VIEWERS_A_PROCESS)
    return [of_each[number::processes] for number in range(processes)]


def _measure(stage: Stage, kind: type[System], crowds: list[Crowd]) -> dict[str, tuple[float, float]]:
    """By crowd: the p99 in milliseconds at the timed viewers, and the cores of the system."""
    users = stage.sizes.latency_users
    with showing(kind, stage, users, users) as watched:
        watched.viewers.order("close", PATIENCE_S)
        return {crowd.name: _watched(watched, crowd, number * 2_000_000) for number, crowd in enumerate(crowds)}


def _watched(watched: Watched, crowd: Crowd, first: int) -> tuple[float, float]:
    """A crowd that comes, warms the system up, watches the first window and goes; events are numbered from `first`."""
    name, count, windows = crowd
    system, sizes = watched.system, watched.system.stage.sizes
    timed = min(count, _TIMED)
    shares = spread(windows[1:] or windows, count - timed)
    with ExitStack() as processes:
        watching, *others = [processes.enter_context(system.viewers()) for _ in range(1 + len(shares))]
        say(f"viewers, {name}, {system.name}: connecting")
        orders = {"url": system.url, "column": "accountType"}
        watching.order("watch", PATIENCE_S, **orders, windows=windows[:1], count=timed, timed=timed)
        for viewers, share in zip(others, shares, strict=True):
            viewers.begin("watch", **orders, windows=share, count=len(share), timed=0)
        for viewers in others:
            viewers.answer(PATIENCE_S)
        watched.send(first, _RATE, _RATE * (sizes.warm_up_s + UNCOUNTED_S))
        time.sleep(_SETTLE_S)
        watching.order("collect")
        say(f"viewers, {name}, {system.name}: {_RATE} changes/s for {sizes.crowd_s} s")
        first += 1_000_000
        sent = watched.send(first, _RATE, _RATE * (sizes.crowd_s + UNCOUNTED_S))
        time.sleep(_SETTLE_S)
        seen = watching.order("collect", PATIENCE_S)["seen"]
        for viewers in (watching, *others):
            viewers.begin("close")
        for viewers in (watching, *others):
            viewers.answer(PATIENCE_S)
        time.sleep(_SETTLE_S)
    # What was never shown in the time that was given counts as shown at its end.
    end_ns = sent.times_ns[-1] + int(_SETTLE_S * 1e9)
    counted = range(UNCOUNTED_S * _RATE, len(sent.times_ns))
    latencies = [
        (times.get(first + n, end_ns) - sent.times_ns[n]) / 1e6
        for times in (shown_at(each, first) for each in seen)
        for n in counted
    ]
    return percentile(latencies, 99), sent.cores
