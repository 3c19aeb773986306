"""From the start of each system to the first row at a viewer, and how late events are shown in the minute after."""

from __future__ import annotations

import time
from dataclasses import dataclass
from urllib.request import urlopen

from load import produce
from peer.events import Present
from peer.systems import System, TunedDeephaven, UpLiveboard, Wiring
from peer.watching import Watched
from processes import await_until, say
from report import Figure, Target, percentile
from stage import PATIENCE_S, Stage

_USERS = 2_000
_RATE = 200
_STEP_S = 5
_POLL_S = 0.05
_SOON = Target(2, of_ratio=True)
_PERCENTILES = {"p50": 50.0, "p99": 99.0}


@dataclass
class Minute:
    """How a system began."""

    page_s: float
    """From its start until its page answers."""
    row_s: float
    """From its start until the viewer shows a row."""
    all_s: float
    """From its start until the viewer shows all that was there."""
    steps_ms: list[list[float]]
    """How late the events of every few seconds were shown."""


def first_minute(stage: Stage) -> list[Figure]:
    """Both from processes that were just started, with the classes they load still in the disk's cache."""
    ours, theirs = (_measure(stage, kind) for kind in (UpLiveboard, TunedDeephaven))
    against = f"against {TunedDeephaven.name}"
    figures = [
        Figure(f"first minute, the page answers, {against}", "s", ours.page_s, theirs.page_s),
        Figure(f"first minute, first row at a viewer, {against}", "s", ours.row_s, theirs.row_s, _SOON),
        Figure(f"first minute, all {_USERS:,} rows at a viewer, {against}", "s", ours.all_s, theirs.all_s),
    ]
    for number, (our, their) in enumerate(zip(ours.steps_ms, theirs.steps_ms, strict=True)):
        begin = number * _STEP_S
        figures += [
            Figure(
                f"first minute, {begin} to {begin + _STEP_S} s, {label}, {against}",
                "ms",
                percentile(our, percent),
                percentile(their, percent),
                _SOON if label == "p50" else None,
            )
            for label, percent in _PERCENTILES.items()
        ]
    return figures


def _measure(stage: Stage, kind: type[System]) -> Minute:
    topics = stage.new_topics()
    load = Present(*topics, _USERS, 1)
    produce(stage.bootstrap, load.events())
    system = kind(stage, Wiring(*topics))
    with system.viewers() as viewers:
        say(f"{kind.name}: starting")
        with system:
            viewers.begin("watch", url=system.url, windows=[{"table": "final_ui"}], column="accountType")
            viewers.begin("row")
            viewers.begin("until", total=load.users, value=load.mark)
            page_s = _answers_after(system)
            viewers.answer(PATIENCE_S)
            row_s, all_s = ((viewers.answer(PATIENCE_S)["at"] - system.started_ns) / 1e9 for _ in range(2))
            say(f"{kind.name}: page {page_s:.1f} s, first row {row_s:.1f} s, all rows {all_s:.1f} s; {_RATE} events/s")
            played = Watched(system, viewers, load).play(0, _RATE, stage.sizes.first_s, uncounted_s=0)
    stage.admin.delete(topics)
    late, step = played.latencies_ms, _RATE * _STEP_S
    steps = [late[begin : begin + step] for begin in range(0, len(late), step)]
    say(f"{kind.name}: p50 of every {_STEP_S} s: " + ", ".join(f"{percentile(each, 50.0):.1f}" for each in steps))
    return Minute(page_s, row_s, all_s, steps)


def _answers_after(system: System) -> float:
    def answers() -> bool:
        system.check()
        try:
            with urlopen(system.url, timeout=5.0):
                return True
        except OSError:
            return False

    await_until(answers, f"the page of {system.name}", PATIENCE_S, _POLL_S)
    return (time.monotonic_ns() - system.started_ns) / 1e9
