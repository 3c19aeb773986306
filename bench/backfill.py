"""From the start of a build to complete tables, over a long history."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from load import History, produce
from processes import in_process, say
from report import Figure, Target
from run import ASOF, INNER, LEFT, WHOLE, Run, over, sparking
from stage import PATIENCE_S, Stage

from liveboard.contract.board import Board

_COLD_LEFT = Target(20)
_WARM_LEFT = Target(100_000, at_least=True)


@dataclass(frozen=True)
class _Built:
    """How long the first three builds of a process took, in seconds: Java compiles what it runs until the third."""

    cold_from_process: float
    cold: float
    second: float
    warm: float


def backfill(stage: Stage) -> list[Figure]:
    """Each join alone with its sources, then the whole default board, each in a fresh process: cold, then warm."""
    history = produced(stage)
    tables = {
        "left": (LEFT, {"final_ui": history.users}),
        "inner": (INNER, {"final_ui": history.pairs()}),
        "asof": (ASOF, {"user_account": history.accounts}),
    }
    everything = {
        "users_ui": history.users,
        "accounts_ui": history.accounts,
        "rejects_ui": 0,
        "final_ui": history.users,
        "user_account": history.accounts,
        "by_type": 1,
    }
    topics, events = (history.users_topic, history.accounts_topic), history.users + history.accounts
    figures = []
    for name, (board, rows) in {**tables, "whole default board": (WHOLE, everything)}.items():
        say(f"backfill, {name}: building three times from {events:,} events")
        work = (_measure, stage, over(board, *topics), rows, time.time_ns())
        built = in_process(f"backfill, {name}", 4 * PATIENCE_S, *work)
        cold, warm = (_COLD_LEFT, _WARM_LEFT) if name == "left" else (None, None)
        figures += [
            Figure(f"backfill, {name}, cold, from process start", "s", built.cold_from_process),
            Figure(f"backfill, {name}, cold, from query start", "s", built.cold, target=cold),
            Figure(f"backfill, {name}, second build", "s", built.second),
            Figure(f"backfill, {name}, warm (third build)", "s", built.warm),
            Figure(f"backfill, {name}, warm rate", "events/s", events / built.warm, target=warm),
        ]
    return figures


@cache
def produced(stage: Stage) -> History:
    """The history that the builds read; once for all measures and rounds."""
    sizes = stage.sizes
    say(f"producing {sizes.users:,} users and {sizes.accounts:,} accounts")
    history = History(*stage.new_topics(), sizes.users, sizes.accounts)
    produce(stage.bootstrap, history.events())
    return history


def _measure(stage: Stage, board: Board, rows: Mapping[str, int], process_started_ns: int) -> _Built:
    with sparking(stage) as spark:
        times = []
        for _ in range(3):
            run = Run(stage, spark, board)
            started_ns = time.time_ns()
            run.build()
            times.append((started_ns, time.time_ns()))
            run.expect_rows(rows)
            run.close()
    cold, second, warm = ((ended - started) / 1e9 for started, ended in times)
    return _Built((times[0][1] - process_started_ns) / 1e9, cold, second, warm)
