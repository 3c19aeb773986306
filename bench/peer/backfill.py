"""From nothing to a client that shows the complete join of a long history; then the memory, and the CPU at rest."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache

from load import produce
from peer.events import WINDOW, Past
from peer.systems import Liveboard, System, TunedDeephaven, Wiring
from processes import say
from report import Figure, Target
from stage import PATIENCE_S, Stage, cores, memory_gb

KINDS = ("left", "inner", "asof")
_SETTLE_S = 5.0


@dataclass
class Built:
    """How long the builds of one process took, and what it needed then."""

    cold_s: float = 0.0
    warm_s: list[float] = field(default_factory=list)
    followed_s: list[float] = field(default_factory=list)
    """Until what comes after the history is shown too; of warm builds."""
    memory_gb: float = 0.0
    rest_cores: float = 0.0


_FIGURES: tuple[tuple[str, str, Callable[[Built], float], Target | None], ...] = (
    ("backfill, cold", "s", lambda built: built.cold_s, Target(3, of_ratio=True)),
    ("backfill, warm", "s", lambda built: built.warm_s[-1], Target(3, of_ratio=True)),
    ("backfill, warm, until it follows", "s", lambda built: built.followed_s[-1], None),
    ("memory, after the cold build", "GB", lambda built: built.memory_gb, Target(1.5, of_ratio=True)),
    ("CPU, at rest", "cores", lambda built: built.rest_cores, None),
)


def backfill(stage: Stage, how: str) -> list[Figure]:
    """A join in fresh processes, cold and then warm; the tuned peer is also the faster one here."""
    pasts = produced(stage)
    ours, theirs = (build(stage, system, pasts, how) for system in (Liveboard, TunedDeephaven))
    return [
        Figure(f"{name}, {how}, against {TunedDeephaven.name}", unit, value(ours), value(theirs), target)
        for name, unit, value, target in _FIGURES
    ]


@cache
def produced(stage: Stage) -> list[Past]:
    """The same history in several pairs of topics, each with a mark of its own; once for all joins and rounds."""
    sizes = stage.sizes
    pasts = []
    for number in range(1 + sizes.warm_builds):
        say(
            f"producing {sizes.users:,} users and {sizes.accounts:,} accounts ({number + 1} of {1 + sizes.warm_builds})"
        )
        past = Past(*stage.new_topics(), sizes.users, sizes.accounts, f"last-{number}")
        produce(stage.bootstrap, past.events())
        pasts.append(past)
    return pasts


def build(stage: Stage, kind: type[System], pasts: list[Past], how: str) -> Built:
    """Builds the join of the first topics from the process's start, then that of each other pair by a swap."""
    wirings = [Wiring(past.users_topic, past.accounts_topic, (how,)) for past in pasts]
    content = pasts[0].content(how)
    total = content.rows
    window = {"table": "final_ui", "offset": max(0, total - WINDOW), "size": WINDOW}
    system = kind(stage, wirings[0])
    built = Built()
    with system.viewers() as viewers, system:
        say(f"backfill, {how}, {kind.name}: cold")
        viewers.begin("watch", url=system.url, windows=[window], column=content.matched_column)
        viewers.begin("until", total=total, value=pasts[0].mark)
        viewers.answer(PATIENCE_S)
        built.cold_s = (viewers.answer(PATIENCE_S)["at"] - system.started_ns) / 1e9
        system.await_following(wirings[0])
        time.sleep(_SETTLE_S)
        built.memory_gb = memory_gb(system.processes())
        built.rest_cores = cores(system.processes(), stage.sizes.rest_s)
        system.expect(content, viewers)
        for past, wiring in zip(pasts[1:], wirings[1:], strict=True):
            say(f"backfill, {how}, {kind.name}: warm")
            asked_ns = time.monotonic_ns()
            system.swap(wiring, viewers)
            at = viewers.order("until", PATIENCE_S, total=total, value=past.mark)["at"]
            built.warm_s.append((at - asked_ns) / 1e9)
            system.await_following(wiring)
            built.followed_s.append((time.monotonic_ns() - asked_ns) / 1e9)
    return built
