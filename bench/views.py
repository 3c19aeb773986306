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
from processes import Helper, await_ready, await_until, repeating, say, signal_between
from report import Figure, Target, percentile
from serving import RATE, TABLE, WINDOW, Served, changed_row, subscribed, timing_viewer
from stage import PATIENCE_S, Extra, Stage, cpu_s
from websockets.asyncio.client import ClientConnection

from liveboard.contract.board import View
from liveboard.contract.errors import LiveboardError

_PAIRS = 6
_WARM_UP_S = 5.0
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

    Phases without and with views follow each other, so that a machine with other work to do disturbs both alike. In the
    first one there are no views, in the later ones without them nobody looks at them, and they rest.
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
        await_until(lambda: _changes(served) > 0, "the load", PATIENCE_S)
        with repeating(_ANNOUNCED_EVERY_S, lambda _: served.announce()):
            # The load begins with what it could not do while its process started.
            time.sleep(_WARM_UP_S)
            for pair in range(_PAIRS):
                say(f"views: phases {pair + 1} of {_PAIRS}, without and with")
                spans[False].append(_pass(seconds))
                if not pair:
                    _define(served)
                tables = [table for table in served.server.catalogue.named() if table.name in names]
                with _watched(served, names):
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
    without, beside = (statistics.median(p99s[with_views]) for with_views in (False, True))
    pooled = _p99_ms(found, spans[True]) / _p99_ms(found, spans[False])
    count, pairs = len(_VIEWS), f"median of {_PAIRS} phases of {seconds} s"
    multiple = f"p99 with {count} views, as a multiple of without"
    figures = [
        Figure(f"p99 of a viewer, no views over {rows:,} rows, {pairs}", "ms", without),
        Figure(f"p99 of a viewer, {count} views over {rows:,} rows, {pairs} in turn", "ms", beside),
        # One bad moment of the machine decides about the p99 of all phases together, but not about the median.
        Figure(multiple, "", beside / without, target=Target(1.5)),
        Figure(f"{multiple}, all phases together", "", pooled),
        Figure(f"{multiple}, least of the pairs of phases", "", min(ratios)),
        Figure(f"{multiple}, greatest of the pairs of phases", "", max(ratios)),
        Figure(f"rows of {count} views that changed", "rows/s", changed / _PAIRS / seconds),
        Figure(f"{count} views, the process that evaluates them", "cores", worked / _PAIRS / seconds),
    ]
    by_phase = {"without": p99s[False], "with": p99s[True]}
    return figures, {"p99_ms_by_phase": {name: [round(ms, 2) for ms in some] for name, some in by_phase.items()}}


def _changes(served: Served) -> int:
    """How many rows of the table have changed since it was loaded."""
    return sum(table.updates for table in served.server.catalogue.named() if table.name == TABLE) - served.rows


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


def _define(served: Served) -> None:
    """Makes the views, and waits until each has been evaluated."""
    catalogue, names = served.server.catalogue, {view.name for view in _VIEWS}
    for view in _VIEWS:
        served.server.feed.loop.call_soon_threadsafe(served.server.sql.define, view.name, view)
    await_until(lambda: names <= {table.name for table in catalogue.named()}, "the views", PATIENCE_S, 0.1)


@contextmanager
def _watched(served: Served, tables: Sequence[str]) -> Iterator[None]:
    """Somebody looks at the views; before and afterwards nobody does, and they rest."""
    ready, stopping = signal_between(), signal_between()
    watcher = Helper("who looks at the views", _watch, ready, stopping, served.port, tables)
    await_ready(ready, "who looks at the views")
    yield
    stopping.set()
    watcher.result(PATIENCE_S)
    await_until(lambda: not served.server.sql.is_working, "the end of an evaluation", PATIENCE_S)


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
