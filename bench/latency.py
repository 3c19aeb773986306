"""From the call of produce() to the moment at which a consumer of the changelog has the row."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from load import History, Mixed, produce
from player import ARRIVAL_S, Played, Player
from processes import in_process, say
from report import Figure, Target, percentile
from run import JOINED, LEFT, WHOLE, Run, driver_processes, following, over, sparking
from stage import PATIENCE_S, Stage, cpu_s

from liveboard.contract.board import Board

_BOARDS = {"final_ui alone": LEFT, "default board": WHOLE}
_RATES = (100, 1_000)
_AGGREGATE = "aggregate, default board"
_PERCENTILES = {"p50": 50.0, "p95": 95.0, "p99": 99.0, "p99.9": 99.9, "max": 100.0}
_TARGETS = {(1_000, "p50"): Target(5), (1_000, "p99"): Target(30)}


def latency(stage: Stage) -> list[Figure]:
    """Even loads on the left join, alone and with all else that the default board has, over checkpoints."""
    return [each for name, board in _BOARDS.items() for each in _measured(stage, f"latency, {name}", board, _RATES)]


def aggregate(stage: Stage) -> list[Figure]:
    """What the default board's totals by type cost it: the same load without them, with them, and both once more."""
    rate = _RATES[-1]
    found: dict[str, list[dict[str, float]]] = {"without": [], "with": []}
    for word, board in 2 * (("without", JOINED), ("with", WHOLE)):
        figures = _measured(stage, _AGGREGATE, board, (rate,))
        found[word].append({figure.measure: figure.liveboard or 0.0 for figure in figures})
    kept = [Figure(name, "ms", value) for name, value in found["with"][-1].items() if "by_type" in name]
    for what in ("final_ui, p50", "final_ui, p99", "user_account, p50", "user_account, p99", "processor of the driver"):
        name = f"{_AGGREGATE}, {rate:,}/s, {what}"
        without, with_ = (sum(each[name] for each in found[word]) / 2 for word in ("without", "with"))
        kept.append(Figure(f"{name}, without by_type", "cores" if "driver" in what else "ms", without))
        kept.append(Figure(f"{name}, with / without by_type", "", with_ / without))
    return kept


def _measured(stage: Stage, name: str, board: Board, rates: Sequence[int]) -> list[Figure]:
    """In a process of its own."""
    timeout_s = PATIENCE_S + (len(rates) + 1) * (stage.sizes.seconds + 2 * ARRIVAL_S)
    return in_process(name, timeout_s, _measure, stage, name, board, rates)


def _measure(stage: Stage, name: str, board: Board, rates: Sequence[int]) -> list[Figure]:
    sizes = stage.sizes
    topics = stage.new_topics()
    board = over(board, *topics)
    produce(stage.bootstrap, History(*topics, sizes.latency_users, 0).events())
    results: list[Figure] = []
    with sparking(stage) as spark:
        run = Run(stage, spark, board)
        with following(run.build(f"{sizes.checkpoint_s} seconds")) as generation:
            player = Player(stage, run, generation, Mixed(*topics, sizes.latency_users))
            say(f"{name}: warming up for {sizes.warm_up_s} s")
            player.play(0, _RATES[-1], sizes.warm_up_s)
            first = 1_000_000
            for rate in rates:
                say(f"{name}: {rate} events/s for {sizes.seconds} s")
                before, began = cpu_s(driver_processes()), time.monotonic()
                played = player.play(first, rate, sizes.seconds)
                cores = (cpu_s(driver_processes()) - before) / (time.monotonic() - began)
                first += 1_000_000
                results += _results(f"{name}, {rate:,}/s", rate, played)
                inside = _checkpoints(run.checkpoint, played)
                results.append(Figure(f"{name}, {rate:,}/s, checkpoints inside", "", inside))
                results.append(Figure(f"{name}, {rate:,}/s, processor of the driver", "cores", cores))
        run.close()
    return results


def _results(name: str, rate: int, played: Played) -> list[Figure]:
    of_tables = [
        Figure(f"{name}, {table}, {label}", "ms", percentile(found, percent), target=_TARGETS.get((rate, label)))
        for table, found in played.latencies_ms.items()
        for label, percent in _PERCENTILES.items()
    ]
    return [*of_tables, Figure(f"{name}, producer behind its pace, max", "ms", played.late_ms)]


def _checkpoints(query: Path, played: Played) -> int:
    """How many checkpoints were finished inside; only the last two are kept."""
    commits = [path for path in (query / "commits").iterdir() if path.name.isdigit()]
    return sum(played.began_ns <= path.stat().st_mtime_ns <= played.ended_ns for path in commits)
