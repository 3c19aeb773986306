"""What viewers of an ordinary table notice of views over it: phases without and with views, in turn."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from multiprocessing.synchronize import Event as Signal

import psutil
from confluent_kafka import Producer
from processes import Helper, await_ready, await_until, repeating, signal_between
from report import Figure, Target, percentile
from serving import RATE, TABLE, WINDOW, Served, changed_row, subscribed, timing_viewer
from stage import PATIENCE_S, Extra, Stage, cpu_s
from websockets.asyncio.client import ClientConnection

from liveboard.contract.board import View
from liveboard.contract.errors import LiveboardError

_PAIRS = 4
_ANNOUNCED_EVERY_S = 3.0
_VIEWS = tuple(
    View(
        name=f"view_{number}",
        sql=(
            f"SELECT accountType, count(*) AS n, sum(balance) AS total, sum(microsecond(ts)) AS stamp FROM {TABLE} "
            f"WHERE age % 20 <> {number} GROUP BY accountType"
        ),
    )
    for number in range(20)
)


def views(stage: Stage) -> tuple[list[Figure], Extra]:
    """What viewers of an ordinary table notice of 20 views over it, 1,000 changes a second.

    Phases without and with views follow each other, so that a machine with other work to do disturbs both alike.
    """
    rows, seconds, names = stage.sizes.rows, stage.sizes.seconds, [view.name for view in _VIEWS]
    ready, stopping = signal_between(), signal_between()
    spans: dict[bool, list[tuple[float, float]]] = {False: [], True: []}
    worked = changed = 0.0
    with Served(stage, rows) as served:
        served.await_rows()
        viewer = Helper("the viewer", timing_viewer, ready, served.port, stopping)
        await_ready(ready, "the viewer")
        load = Helper("the load", _load, stage, stopping)
        with repeating(_ANNOUNCED_EVERY_S, lambda _: served.announce()):
            for _ in range(_PAIRS):
                spans[False].append(_pass(seconds))
                with _views_shown(served):
                    tables = [table for table in served.server.catalogue.named() if table.name in names]
                    before, busy = sum(table.updates for table in tables), _sql_s()
                    spans[True].append(_pass(seconds))
                    changed += sum(table.updates for table in tables) - before
                    worked += _sql_s() - busy
        stopping.set()
        load.result(PATIENCE_S)
        found = viewer.result(PATIENCE_S)
    if not changed:
        raise LiveboardError("the views did not change, so nothing was measured")
    p99s = {with_views: [_p99_ms(found, [span]) for span in some] for with_views, some in spans.items()}
    ratios = [after / before for before, after in zip(p99s[False], p99s[True], strict=True)]
    without, beside = (_p99_ms(found, spans[with_views]) for with_views in (False, True))
    count, pairs = len(_VIEWS), f"{_PAIRS} phases of {seconds} s"
    figures = [
        Figure(f"p99 of a viewer, no views over {rows:,} rows, {pairs}", "ms", without),
        Figure(f"p99 of a viewer, {count} views over {rows:,} rows, {pairs} in turn", "ms", beside),
        Figure(f"p99 with {count} views, as a multiple of without", "", beside / without, target=Target(1.5)),
        Figure(f"the same by pairs of phases, median of {_PAIRS}", "", statistics.median(ratios)),
        Figure(f"rows of {count} views that changed", "rows/s", changed / _PAIRS / seconds),
        Figure(f"{count} views, the process that evaluates them", "cores", worked / _PAIRS / seconds),
    ]
    by_phase = {"without": p99s[False], "with": p99s[True]}
    return figures, {"p99_ms_by_phase": {name: [round(ms, 2) for ms in some] for name, some in by_phase.items()}}


def _pass(seconds: float) -> tuple[float, float]:
    """Waits; returns when that began and ended."""
    begun = time.time()
    time.sleep(seconds)
    return begun, begun + seconds


def _p99_ms(found: Sequence[tuple[float, float]], spans: Sequence[tuple[float, float]]) -> float:
    """Of the changes that were made in one of the spans."""
    return percentile([late for at, late in found if any(begin <= at < end for begin, end in spans)], 99) * 1000


def _sql_s() -> float:
    """The processor time of the SQL processes."""
    children = psutil.Process().children()
    return cpu_s(child for child in children if "liveboard.sql.worker" in child.cmdline())


@contextmanager
def _views_shown(served: Served) -> Iterator[None]:
    """The views are defined, somebody looks at all of them, and each has been evaluated."""
    sql, catalogue, loop = served.server.sql, served.server.catalogue, served.server.feed.loop
    names = {view.name for view in _VIEWS}
    ready, stopping = signal_between(), signal_between()
    for view in _VIEWS:
        loop.call_soon_threadsafe(sql.define, view.name, view)
    await_until(lambda: names <= {table.name for table in catalogue.named()}, "the views", PATIENCE_S, 0.1)
    watcher = Helper("who looks at the views", _watch, ready, stopping, served.port, sorted(names))
    await_ready(ready, "who looks at the views")
    yield
    stopping.set()
    watcher.result(PATIENCE_S)
    for name in names:
        loop.call_soon_threadsafe(sql.define, name, None)
    await_until(lambda: not names & {table.name for table in catalogue.named()}, "the end of views", PATIENCE_S, 0.1)


def _load(stage: Stage, stopping: Signal) -> None:
    """Changes 1,000 rows a second, half of them in the window that is looked at, until it is told to stop."""
    producer = Producer({**stage.client_config, "linger.ms": 0, "log_level": 0})
    begun, number = time.perf_counter(), 0
    while not stopping.is_set():
        while number < (time.perf_counter() - begun) * RATE:
            row = number % WINDOW if number % 2 else number * 7919 % stage.sizes.rows
            event = changed_row(row, number, f"|{time.time():.6f}")
            producer.produce(event.topic, event.value, event.key)
            producer.poll(0)
            number += 1
        time.sleep(0.0005)
    producer.flush()


def _watch(ready: Signal, stopping: Signal, port: int, tables: Sequence[str]) -> None:
    """Looks at tables until it is told to stop."""

    async def read(socket: ClientConnection) -> None:
        async for _ in socket:
            pass

    async def view() -> None:
        async with AsyncExitStack() as stack:
            reading = asyncio.create_task(read(await subscribed(port, stack, tables)))
            ready.set()
            await asyncio.to_thread(stopping.wait)
            reading.cancel()

    asyncio.run(view())
