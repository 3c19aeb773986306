"""Latency against the size of what is there already: the length of the history, and of one key's history."""

from __future__ import annotations

from peer.events import WINDOW
from peer.latency import measure
from peer.systems import Liveboard, System, TunedDeephaven
from processes import say
from report import Figure, percentile
from stage import Extra, Stage

from liveboard.contract.errors import LiveboardError

_RATE = 200
_PERCENTILES = {"p50": 50.0, "p99": 99.0}
_USERS_SHARE = 10
"""Users have that many accounts each, in the histories."""

Points = dict[str, dict[str, dict[str, dict[str, float]]]]
"""What grows, to system, to size, to percentile, to milliseconds."""


def growth(stage: Stage) -> tuple[list[Figure], Extra]:
    """The figures against the tuned peer, and the same as points to draw."""
    histories = {size: (max(WINDOW, size // _USERS_SHARE), size) for size in stage.sizes.histories}
    per_key = {size: (WINDOW, WINDOW * size) for size in stage.sizes.per_key}
    figures: list[Figure] = []
    points: Points = {}
    for what, sizes in {"accounts of history": histories, "accounts per key": per_key}.items():
        of_both = {kind.name: _points(stage, kind, sizes) for kind in (Liveboard, TunedDeephaven)}
        points[what] = of_both
        ours, theirs = of_both.values()
        figures += [
            Figure(
                f"growth, {size:,} {what}, {label}, against {TunedDeephaven.name}",
                "ms",
                ours.get(str(size), {}).get(label),
                theirs.get(str(size), {}).get(label),
            )
            for size in sizes
            for label in _PERCENTILES
        ]
    return figures, {"points": points}


def _points(stage: Stage, kind: type[System], sizes: dict[int, tuple[int, int]]) -> dict[str, dict[str, float]]:
    """The percentiles by size; a size that the system does not manage is left out."""
    found: dict[str, dict[str, float]] = {}
    for size, (users, accounts) in sizes.items():
        try:
            played = measure(stage, kind, users, accounts, (_RATE,), stage.sizes.growth_s)[_RATE]
        except LiveboardError as error:
            say(f"growth, {kind.name}, {size:,}: {error}")
            continue
        values = played.latencies_ms
        found[str(size)] = {name: float(f"{percentile(values, at):.4g}") for name, at in _PERCENTILES.items()}
    return found
