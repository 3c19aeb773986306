"""From the start of a build to complete tables, over a long history."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from load import History, produce
from processes import in_process, say
from report import Result
from stage import ASOF, INNER, LEFT, PATIENCE_S, WHOLE, Run, Stage, sparking

from liveboard.config import Board
from liveboard.kafka.admin import Admin

_COLD_LEFT_S = 20.0
_WARM_LEFT_RATE = 100_000.0


@dataclass(frozen=True)
class _Built:
    """How long the first three builds of a process took, in seconds: Java compiles what it runs until the third."""

    cold_from_process: float
    cold: float
    second: float
    warm: float


def backfill(stage: Stage) -> list[Result]:
    """Each join alone, then the whole default board, each in a fresh process: cold, then warm."""
    history = history_of(stage)
    produce_once(stage, history)
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
    }
    results = []
    for name, (board, rows) in {**tables, "whole default board": (WHOLE, everything)}.items():
        say(f"backfill, {name}: building three times from {history.users + history.accounts:,} events")
        built = in_process(
            f"backfill, {name}", 4 * PATIENCE_S, _measure, stage, board, rows, board is WHOLE, time.time_ns()
        )
        left = name == "left"
        rate = (history.users + history.accounts) / built.warm
        results += [
            Result(f"backfill, {name}, cold, from process start", built.cold_from_process, "s"),
            Result(f"backfill, {name}, cold, from query start", built.cold, "s", _COLD_LEFT_S if left else None),
            Result(f"backfill, {name}, second build", built.second, "s"),
            Result(f"backfill, {name}, warm (third build)", built.warm, "s"),
            Result(f"backfill, {name}, warm rate", rate, "events/s", _WARM_LEFT_RATE if left else None, True),
        ]
    return results


def history_of(stage: Stage) -> History:
    """The history that the builds read, in topics of the default board's names."""
    users, accounts = (WHOLE.sources[name].topic for name in ("users", "accounts"))
    return History(users, accounts, stage.sizes.users, stage.sizes.accounts)


def produce_once(stage: Stage, history: History) -> None:
    """Produces the history unless it is there."""
    admin = Admin({"bootstrap.servers": stage.bootstrap})
    topics = {history.users_topic, history.accounts_topic}
    if not topics & admin.partitions().keys():
        say(f"producing {history.users:,} users and {history.accounts:,} accounts")
        admin.create(topics)
        produce(stage.bootstrap, history.events())


def _measure(stage: Stage, board: Board, rows: Mapping[str, int], with_raw: bool, process_started_ns: int) -> _Built:
    with sparking(stage) as spark:
        times = []
        for _ in range(3):
            run = Run(stage, spark, board)
            started_ns = time.time_ns()
            if with_raw:
                run.build()
            else:
                run.build_join()
            times.append((started_ns, time.time_ns()))
            run.expect_rows(rows)
            run.close()
    cold, second, warm = ((ended - started) / 1e9 for started, ended in times)
    return _Built((times[0][1] - process_started_ns) / 1e9, cold, second, warm)
