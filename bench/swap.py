"""How long a swap takes: from the control message to the new generation live, beside one that is followed."""

from __future__ import annotations

import statistics
import time

from load import History, produce
from peer.systems import Liveboard, Wiring
from processes import say
from report import Figure, Target
from stage import Stage

_ROWS = 1_000
_WARM_UPS = 3


class _Pipeline(Liveboard):
    """Without a server: the status tells what is live."""

    commands = ("pipeline",)


def swap(stage: Stage) -> list[Figure]:
    """Swaps between topics of a thousand rows, each to topics that were never read before."""
    wirings = [_filled(stage) for _ in range(_WARM_UPS + stage.sizes.swaps + 1)]
    with _Pipeline(stage, wirings[0]) as system:
        system.await_following(wirings[0])
        times = []
        for number, wiring in enumerate(wirings[1:], 1):
            say(f"swap {number} of {len(wirings) - 1}")
            started = time.monotonic()
            system.ask_for(wiring)
            system.await_following(wiring)
            times.append(time.monotonic() - started)
    return [
        Figure(f"swap, topics of {_ROWS:,} rows, first", "s", times[0]),
        Figure(f"swap, topics of {_ROWS:,} rows, warm", "s", statistics.median(times[_WARM_UPS:]), target=Target(5)),
    ]


def _filled(stage: Stage) -> Wiring:
    topics = stage.new_topics()
    produce(stage.bootstrap, History(*topics, _ROWS // 10, _ROWS - _ROWS // 10).events())
    return Wiring(*topics)
