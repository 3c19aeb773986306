"""A swap to other topics while a viewer watches events flow: how long it takes, and the longest silence it sees."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple

from confluent_kafka import Producer
from load import produce
from peer.events import Present, row_of
from peer.systems import Deephaven, Liveboard, System, TunedDeephaven, Wiring
from processes import repeating, say
from report import Figure, Target
from stage import PATIENCE_S, Stage

_RATE = 100
_USERS = 500
_BEFORE_S = 3.0
_AFTER_S = 3.0
_SWAPS = 10
_COUNTED = 4
"""The first ones warm up; the last ones count, and the very first by itself."""


def swap(stage: Stage) -> list[Figure]:
    """Between topics of a thousand rows, each never read before."""
    found = {kind.name: _measure(stage, kind) for kind in (Liveboard, Deephaven, TunedDeephaven)}
    ours = found[Liveboard.name]
    return [
        figure
        for peer in (Deephaven.name, TunedDeephaven.name)
        for theirs in [found[peer]]
        for figure in (
            Figure(f"swap, topics of 1,000 rows, against {peer}", "s", ours.warm_s, theirs.warm_s, Target(1.5)),
            Figure(f"swap, the first of a process, against {peer}", "s", ours.first_s, theirs.first_s),
            Figure(f"swap, longest gap a viewer sees, against {peer}", "ms", ours.gap_ms, theirs.gap_ms),
        )
    ]


class _Swaps(NamedTuple):
    """How long it takes until the viewer shows the other topics' rows, and the longest time without news."""

    first_s: float
    warm_s: float
    gap_ms: float


def _measure(stage: Stage, kind: type[System]) -> _Swaps:
    loads = [Present(*stage.new_topics(), _USERS, _USERS, f"ready-{n}") for n in range(1 + _SWAPS)]
    for load in loads:
        produce(stage.bootstrap, load.events())
    wirings = [Wiring(load.users_topic, load.accounts_topic) for load in loads]
    system = kind(stage, wirings[0])
    times, gaps = [], []
    with system.viewers() as viewers, system:
        viewers.order("watch", PATIENCE_S, url=system.url, windows=[{"table": "final_ui"}], column="accountType")
        viewers.order("until", PATIENCE_S, total=_USERS, value=loads[0].mark)
        for number in range(_SWAPS):
            say(f"swap, {kind.name}: {number + 1} of {_SWAPS}")
            with _flowing(stage, loads[number : number + 2]):
                time.sleep(_BEFORE_S)
                viewers.order("collect")
                asked_ns = time.monotonic_ns()
                system.swap(wirings[number + 1], viewers)
                at = viewers.order("until", PATIENCE_S, total=_USERS, value=loads[number + 1].mark)["at"]
                time.sleep(_AFTER_S)
                gaps.append(viewers.order("collect")["longestGapNs"][0] / 1e6)
            times.append((at - asked_ns) / 1e9)
            say(f"swap, {kind.name}: {times[-1]:.2f} s, the longest gap {gaps[-1]:.0f} ms")
    stage.admin.delete(topic for wiring in wirings for topic in wiring.topics.values())
    return _Swaps(times[0], statistics.median(times[-_COUNTED:]), max(gaps[-_COUNTED:]))


def _flowing(stage: Stage, loads: Sequence[Present]) -> AbstractContextManager[None]:
    """Accounts keep coming to the topics, for all rows of the window but the first, which carries the mark."""
    producer = Producer({**stage.client_config, "linger.ms": 0, "log_level": 0})

    def produce_next(number: int) -> None:
        for load in loads:
            if row_of(number):
                producer.produce(*load.event(number)[:2], partition=0)
        producer.poll(0)

    return repeating(1 / _RATE, produce_next)
