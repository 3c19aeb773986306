"""From produce() to the callback of a client with the totals by type, beside the joins of the default board."""

from __future__ import annotations

from peer.events import Typed
from peer.latency import PERCENTILES, played
from peer.systems import BY_TYPE, Deephaven, Liveboard, System, TunedDeephaven, Wiring
from peer.watching import Outcome, watching
from report import Figure, percentile
from stage import Stage

_RATE = 1_000


def aggregate(stage: Stage) -> list[Figure]:
    """Until a viewer shows the row of the event's type with the event in it, or with a newer one."""
    found = {kind.name: _measure(stage, kind) for kind in (Liveboard, Deephaven, TunedDeephaven)}
    ours = found[Liveboard.name]
    figures = []
    for peer in (Deephaven.name, TunedDeephaven.name):
        theirs = found[peer]
        figures += [
            Figure(
                f"aggregate, {_RATE:,}/s, {label}, against {peer}",
                "ms",
                percentile(ours.latencies_ms, percent),
                percentile(theirs.latencies_ms, percent),
            )
            for label, percent in PERCENTILES.items()
        ]
        figures.append(
            Figure(f"aggregate, CPU, {_RATE:,} events/s, against {peer}", "cores", ours.sent.cores, theirs.sent.cores)
        )
    return figures


def _measure(stage: Stage, kind: type[System]) -> Outcome:
    users = stage.sizes.latency_users
    load = Typed(*stage.new_topics(), users, users)
    system = kind(stage, Wiring(load.users_topic, load.accounts_topic, ("left", "asof", BY_TYPE)))
    with watching(system, load, BY_TYPE, "largest", load.rows) as watched:
        return played(watched, (_RATE,), stage.sizes.seconds)[_RATE]
