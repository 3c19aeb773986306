"""All processes of a system are killed and started again: how long until a viewer shows what was produced meanwhile."""

from __future__ import annotations

import time

from load import Event, account_json, produce
from peer.systems import TunedDeephaven, UpLiveboard
from peer.watching import Watched, showing
from processes import say
from report import Figure
from stage import PATIENCE_S, Stage

_RATE = 100
_BACK = "back"
_SPARK_BACK = "Spark is back"


def restart(stage: Stage) -> list[Figure]:
    """liveboard goes on from its checkpoint and reads its changelogs, Deephaven reads the topics again."""
    users, accounts = stage.sizes.latency_users, 10 * stage.sizes.latency_users
    found: dict[str, float] = {}
    for kind in (UpLiveboard, TunedDeephaven):
        with showing(kind, stage, users, accounts) as watched:
            watched.play(0, _RATE, stage.sizes.warm_up_s)
            if isinstance(watched.system, UpLiveboard):
                say("liveboard: kill -9 of Spark")
                spark_s = _spark_back_after(watched)
                watched.play(1_000_000, _RATE, stage.sizes.warm_up_s)
            say(f"{kind.name}: kill -9 of everything")
            found[kind.name] = _back_after(watched)
    history = f"{users:,} users and {accounts:,} accounts"
    return [
        Figure(
            f"restart, everything killed, until a viewer ticks, {history}, against {TunedDeephaven.name}",
            "s",
            found[UpLiveboard.name],
            found[TunedDeephaven.name],
        ),
        Figure("restart, Spark killed, until a viewer ticks, who keeps its rows meanwhile", "s", spark_s),
    ]


def _back_after(watched: Watched) -> float:
    """The seconds from the kill to a viewer that connects as soon as it can."""
    system, began = watched.system, time.monotonic_ns()
    system.kill()
    _produce(watched, _BACK)
    system.start()
    with system.viewers() as viewers:
        viewers.order("watch", PATIENCE_S, url=system.url, windows=[{"table": "final_ui"}], column="accountType")
        shown = viewers.order("until", PATIENCE_S, total=watched.load.users, value=_BACK)
    return float(shown["at"] - began) / 1e9


def _spark_back_after(watched: Watched) -> float:
    """The seconds from the kill of Spark to the viewer that was there before."""
    began = time.monotonic_ns()
    for process in watched.system.processes():
        if process.name() == "java":
            process.kill()
    _produce(watched, _SPARK_BACK)
    shown = watched.viewers.order("until", PATIENCE_S, total=watched.load.users, value=_SPARK_BACK)
    return float(shown["at"] - began) / 1e9


def _produce(watched: Watched, mark: str) -> None:
    """An account of the first user, whom the window shows."""
    event = Event(watched.load.accounts_topic, account_json("u0", mark, 0))
    produce(watched.system.stage.bootstrap, [event])
