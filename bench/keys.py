"""Few keys with long histories against many keys with short ones: neither a build nor an event should cost more."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from load import Keyed, burst, produce
from player import ARRIVAL_S, CONNECTING_S, Player
from processes import in_process, say
from pyspark.sql import SparkSession
from report import Figure, Target, percentile
from run import LEFT, Run, following, over, sparking
from stage import PATIENCE_S, Sizes, Stage

from liveboard.contract.errors import LiveboardError
from liveboard.pipeline.generation import Generation

How = Literal["asof", "left", "inner"]

_NAMES: dict[How, str] = {"asof": "as-of", "left": "left", "inner": "inner"}
_TABLE = "final_ui"
_RATES = (200, 1_000)
_PERCENTILES = {"p50": 50.0, "p99": 99.0}
_MOST_TIMES = Target(2)
# Of each rate's event numbers.
_APART = 10_000


class Shape(NamedTuple):
    """How many keys there are, and how many records each of them has before the load."""

    keys: int
    per_key: int

    def __str__(self) -> str:
        return f"{_count(self.keys)} of {self.per_key:,}"


@dataclass(frozen=True)
class Found:
    """The figures of one shape."""

    build_s: float
    latencies_ms: dict[tuple[int, str], float]
    """By rate and name of the percentile."""


def keys(stage: Stage) -> list[Figure]:
    """Users who come again and again, joined with a few accounts in every way: a build, then even loads."""
    a_load_s = CONNECTING_S + stage.sizes.keys_s + 2 * ARRIVAL_S
    timeout_s = (len(shapes(stage.sizes)) + 2) * (2 * PATIENCE_S + len(_RATES) * a_load_s)
    found = {how: in_process(f"keys, {how}", timeout_s, _measure, stage, how) for how in _NAMES}
    return [figure for how in _NAMES for figure in figures(how, stage.sizes, found[how])]


def shapes(sizes: Sizes) -> list[Shape]:
    """The same number of records under few and under many keys; then few keys with a short history.

    What should not cost more comes first: if Java is not yet warm, that counts against it.
    """
    long = [Shape(keys, sizes.keys_records // keys) for keys in sizes.keys]
    return [*long, *(Shape(shape.keys, sizes.keys_short) for shape in long if shape.per_key > sizes.keys_short)]


def figures(how: How, sizes: Sizes, found: dict[Shape, Found]) -> list[Figure]:
    """The figures of one join, and how many times those of many keys or of a short history they are."""
    long = {keys: Shape(keys, sizes.keys_records // keys) for keys in sizes.keys}
    few, many = long[sizes.keys[1]], long[sizes.keys[-1]]
    name = _NAMES[how]
    listed = [Figure(f"keys, build, {_count(keys)}, {name}", "s", found[long[keys]].build_s) for keys in sizes.keys]
    # Few keys have more accounts each, which makes more pairs: there is no target for that.
    target = None if how == "inner" else _MOST_TIMES
    times = found[few].build_s / found[many].build_s
    build = f"keys, build, {_count(few.keys)} / {_count(many.keys)}, {name}"
    listed.append(Figure(build, "times", times, target=target))
    for rate in _RATES:
        listed += [
            Figure(f"keys, {label} at {rate:,}/s, {shape}, {name}", "ms", found[shape].latencies_ms[rate, label])
            for shape in shapes(sizes)
            for label in _PERCENTILES
        ]
        short = {shape: long[shape.keys] for shape in shapes(sizes) if shape not in long.values()}
        compared = [
            (f"{few} / {_count(many.keys)}", few, many),
            *((f"{longer} / {shape}", longer, shape) for shape, longer in short.items()),
        ]
        for names, one, other in compared:
            times = found[one].latencies_ms[rate, "p50"] / found[other].latencies_ms[rate, "p50"]
            # At the higher rate there is a target for the growth alone.
            target = _MOST_TIMES if rate == _RATES[0] or other != many else None
            listed.append(Figure(f"keys, p50 at {rate:,}/s, {names}, {name}", "times", times, target=target))
    return listed


def _measure(stage: Stage, how: How) -> dict[Shape, Found]:
    sizes = stage.sizes
    found = {}
    with sparking(stage) as spark:
        # Java compiles what it runs until the third build, and longer what follows.
        for keys, rates in ((sizes.keys[-1], ()), (sizes.keys[1], _RATES[-1:])):
            say(f"keys, {how}: warming up with {_count(keys)}")
            at_rates(stage, spark, how, Shape(keys, sizes.keys_records // keys), rates, sizes.warm_up_s)
        for shape in shapes(sizes):
            say(f"keys, {how}: {shape}")
            found[shape] = at_rates(stage, spark, how, shape, _RATES, sizes.keys_s)
    return found


def at_rates(stage: Stage, spark: SparkSession, how: How, shape: Shape, rates: tuple[int, ...], seconds: int) -> Found:
    """A build of that shape, then even loads at these rates."""
    topics = stage.new_topics()
    board = over(replace(LEFT, joins={_TABLE: replace(LEFT.joins[_TABLE], how=how)}), *topics)
    # An account that comes makes a pair with every user of its key.
    load = Keyed(*topics, shape.keys, shape.per_key, accounts_come=how != "inner")
    produce(stage.bootstrap, load.history())
    run = Run(stage, spark, board)
    started = time.monotonic()
    generation = run.build()
    build_s = time.monotonic() - started
    run.expect_rows({_TABLE: load.rows(how)})
    with following(generation):
        _await_first(stage, run, generation, load)
        player = Player(stage, run, generation, load)
        played = {rate: player.play(rate * _APART, rate, seconds) for rate in rates}
    run.close()
    latencies_ms = {
        (rate, label): percentile(of_rate.latencies_ms[_TABLE], percent)
        for rate, of_rate in played.items()
        for label, percent in _PERCENTILES.items()
    }
    return Found(build_s, latencies_ms)


def _await_first(stage: Stage, run: Run, generation: Generation, load: Keyed) -> None:
    """Returns when the generation has answered an event; the start of its queries is not the loads' matter."""
    end = run.end(_TABLE) + 1
    burst(stage.bootstrap, load, 0, 1)
    found, _ = run.await_end(_TABLE, end, PATIENCE_S, generation)
    if found < end:
        raise LiveboardError(f"{_TABLE}: no row within {PATIENCE_S:.0f} s of an event")


def _count(keys: int) -> str:
    return f"{keys:,} key{'s' if keys > 1 else ''}"
