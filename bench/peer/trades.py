"""From produce() of a trade to a client with the newest 300 of them, each with its quote of that time."""

from __future__ import annotations

import time

from peer.events import EVENTS_PER_TRADE, Trades, shown_at
from peer.latency import PERCENTILES
from peer.systems import Deephaven, Liveboard, System, TunedDeephaven, Wiring
from peer.watching import UNCOUNTED_S, Watched, watching
from processes import say
from report import Figure, Target, percentile
from stage import Stage

from liveboard.contract.errors import LiveboardError

_RATES = (100, 200, 500, 1_000, 2_000, 3_000)
_WANTED = 2_000
_HISTORY = 5_000
# A system keeps up where the last trade is shown within this time; one with its defaults shows news once a second.
_PROMPT_S = 3.0
# What takes longer to come up with a load is given up.
_ARRIVAL_S = 30.0
_POLL_S = 0.2
_ON_TIME = 0.95
_LABELS = ("p50", "p99")

Found = dict[int, list[float]]
"""Trades a second to the latencies of each, for the rates that were kept up with."""


def trades(stage: Stage) -> list[Figure]:
    """Even loads, ever faster, until a system does not keep up."""
    found = {kind.name: _measure(stage, kind) for kind in (Liveboard, Deephaven, TunedDeephaven)}
    ours = found[Liveboard.name]
    figures = []
    for peer in (Deephaven.name, TunedDeephaven.name):
        theirs = found[peer]
        figures += [
            Figure(
                f"trades, {rate:,}/s with {rate * EVENTS_PER_TRADE:,} events/s, {label}, against {peer}",
                "ms",
                _latency(ours, rate, label),
                _latency(theirs, rate, label),
                Target(1, of_ratio=True) if (rate, label, peer) == (_WANTED, "p99", TunedDeephaven.name) else None,
            )
            for rate in _RATES
            if rate in ours or rate in theirs
            for label in _LABELS
        ]
        most = f"trades, the highest rate that was kept up with, against {peer}"
        at_least = Target(_WANTED, at_least=True)
        figures.append(Figure(most, "trades/s", max(ours, default=0), max(theirs, default=0), at_least))
    return figures


def _latency(found: Found, rate: int, label: str) -> float | None:
    return percentile(found[rate], PERCENTILES[label]) if rate in found else None


def _measure(stage: Stage, kind: type[System]) -> Found:
    load = Trades(*stage.new_topics(), _HISTORY * (EVENTS_PER_TRADE - 1), _HISTORY)
    system = kind(stage, Wiring(load.users_topic, load.accounts_topic, ("asof",)))
    found: Found = {}
    with watching(system, load, "final_ui", "balance", _HISTORY, "newest") as watched:
        say(f"{system.name}: warming up for {stage.sizes.warm_up_s} s")
        _played(watched, 0, _RATES[1], stage.sizes.warm_up_s)
        for number, rate in enumerate(_RATES, 1):
            say(f"{system.name}: {rate:,} trades/s for {stage.sizes.seconds} s")
            latencies_ms = _played(watched, number * 1_000_000, rate, stage.sizes.seconds)
            if latencies_ms is None:
                break
            found[rate] = latencies_ms
    return found


def _played(watched: Watched, first: int, rate: int, seconds: int) -> list[float] | None:
    """How late the viewer showed each trade of an even load; None if the system did not keep up."""
    count = rate * (seconds + UNCOUNTED_S)
    watched.viewers.order("collect")
    sent = watched.send(first * EVENTS_PER_TRADE, rate * EVENTS_PER_TRADE, count * EVENTS_PER_TRADE).times_ns
    took_s = (sent[-1] - sent[0]) / 1e9
    if len(sent) / rate / EVENTS_PER_TRADE < took_s * _ON_TIME:
        raise LiveboardError(f"the producer took {took_s:.1f} s for {seconds + UNCOUNTED_S} s of {rate:,} trades/s")
    times: dict[int, int] = {}
    seen: list[tuple[str | float | None, int]] = []
    deadline = time.monotonic() + _ARRIVAL_S
    while first + count - 1 not in times:
        if time.monotonic() > deadline:
            return None
        time.sleep(_POLL_S)
        seen += watched.viewers.order("collect")["seen"][0]
        times = shown_at(seen, first, watched.load.rows)
    # A trade is the last of its events.
    late_ms = [(times[first + n] - sent[(n + 1) * EVENTS_PER_TRADE - 1]) / 1e6 for n in range(count)]
    return late_ms[rate * UNCOUNTED_S :] if late_ms[-1] < _PROMPT_S * 1000 else None
