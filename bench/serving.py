"""The live-table server alone: it and its clients in processes of their own, over a changelog that is already there."""

from __future__ import annotations

import asyncio
import gc
import json
import statistics
import threading
import time
import urllib.request
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from functools import cache
from multiprocessing.synchronize import Event as Signal
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlencode

import psutil
from confluent_kafka import Producer
from load import Event, produce
from processes import Helper, await_ready, await_until, in_process, repeating, say, signal_between
from report import Figure, Target, percentile
from stage import PATIENCE_S, Extra, Measure, Stage, Suite, cores
from websockets.asyncio.client import ClientConnection, connect

from liveboard.config import LimitSettings, Secret, ServerSettings
from liveboard.contract.board import Wiring
from liveboard.contract.frames import Role, snapshot_body
from liveboard.contract.names import Names
from liveboard.contract.schema import TS, Column
from liveboard.contract.status import STATUS_KEY, BoardStatus, GenerationRecord, Phase, State
from liveboard.serving.auth import Grant
from liveboard.serving.server import LiveServer

KEY = "bench"
TABLE = "final_ui"
_NAMES = Names()
TOPIC = _NAMES.changelog("g1", TABLE)
_COLUMNS = (
    Column("userId", "string"),
    Column("name", "string"),
    Column("email", "string"),
    Column("age", "bigint"),
    Column("accountType", "string"),
    Column("balance", "double"),
    TS,
)
_FIRST = datetime(2026, 1, 1, tzinfo=UTC)
_VIEWERS = 1_000
RATE = 1_000
WINDOW = 300
_QUERIES: dict[str, dict[str, str]] = {
    "sort by a number": {"sort": '[["balance","desc"]]'},
    "sort by a text": {"sort": '[["name","asc"]]'},
    "sort by a text, offset 500,000": {"sort": '[["name","asc"]]', "offset": "500000"},
    "filter and count": {"filter": '[["age",">",90],["accountType","=","gold"]]'},
    "search": {"search": "77 lovelace"},
}
Measured = list[Figure] | tuple[list[Figure], Extra]
_CHARTED = ("balance", "age", "accountType", "name")
_CHARTING_S = 5.0


def changed_row(row: int, change: int = 0, mark: str = "") -> Event:
    """A row of the table; the mark makes its name another one, and the change its time, but not its place."""
    at = _FIRST + timedelta(milliseconds=row, microseconds=change % 1_000)
    values: list[Any] = [
        f"user-{row:08d}",
        f"Ada {row * 7919 % 100_000} Lovelace{mark}",
        f"ada.{row}@example.com",
        row * 31 % 100,
        ("gold", "silver", "basic")[row % 3],
        row * 7919 % 1_000_003 / 7,
        at.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
    ]
    return Event(TOPIC, json.dumps(values, separators=(",", ":")).encode(), key=f"0-{row}")


@cache
def fill(stage: Stage, rows: int, change: int = 0) -> None:
    """Produces one generation of so many rows, or the next change of all of them; once for all measures and rounds."""
    say(f"producing {rows:,} rows")
    stage.admin.create_changelogs([TOPIC, _NAMES.status])
    produce(stage.bootstrap, (changed_row(row, change) for row in range(rows)))


class Served:
    """The rows that are in Kafka, and a server that shows them: inside `with`, it runs in this process."""

    def __init__(
        self, stage: Stage, rows: int, storage: Path | None = None, limits: LimitSettings | None = None
    ) -> None:
        self.stage, self.rows = stage, rows
        record = GenerationRecord(
            state=State.LIVE, wiring=Wiring({}, {}), tables={TABLE: _COLUMNS}, complete_at={TABLE: rows}
        )
        self._status = BoardStatus(sources=("users",), live="g1", generations={"g1": record}, phase=Phase.LIVE)
        self._producer = Producer({**stage.client_config, "linger.ms": 0, "log_level": 0})
        self.announce()
        self._producer.flush()
        server = ServerSettings(port=0, psk=Secret(KEY), limits=limits or LimitSettings())
        self.server = LiveServer(server, stage.client_config, _NAMES, storage=storage)
        self.port = int(self.server.address.rpartition(":")[2])
        self._stopping = threading.Event()
        self._started = threading.Event()
        self._thread = threading.Thread(target=self.server.run, args=(self._stopping, self._started.set))

    def __enter__(self) -> Self:
        self._thread.start()
        self._started.wait()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping.set()
        self._thread.join()
        self._producer.flush()

    def await_rows(self) -> None:
        """Returns when the table is there."""
        catalogue = self.server.catalogue
        await_until(lambda: catalogue.live is not None, f"{self.rows:,} rows", PATIENCE_S, pause_s=0.01)

    def announce(self) -> None:
        """Says, as an orchestrator does again and again, that someone fills the table."""
        self._producer.produce(_NAMES.status, self._status.encode(), STATUS_KEY)

    def change(self, row: int, change: int, mark: str) -> None:
        """Changes a row."""
        event = changed_row(row, change, mark)
        self._producer.produce(event.topic, event.value, event.key)
        self._producer.poll(0)

    def get(self, parameters: dict[str, str], of: str = "") -> float:
        """Asks for rows of the table, or for something else of it; returns the seconds that it took."""
        url = f"http://127.0.0.1:{self.port}/api/tables/{TABLE}{of}?{urlencode(parameters)}"
        request = urllib.request.Request(url, headers={"Authorization": f"Bearer {KEY}"})
        begun = time.perf_counter()
        with urllib.request.urlopen(request) as answer:
            answer.read()
        return time.perf_counter() - begun

    def make_mirror(self) -> float:
        """Sorts for the first time; returns the seconds that it took."""
        return self.get({"sort": '[["age","asc"]]', "size": "1"})


def backfill(stage: Stage) -> list[Figure]:
    """From the start of the server until the table is there."""
    rows = stage.sizes.rows
    process, served = psutil.Process(), Served(stage, rows)
    gc.collect()
    before = process.memory_info().rss
    lags: list[float] = []
    begun, cpu = time.perf_counter(), time.process_time()
    with served:
        probing = asyncio.run_coroutine_threadsafe(probe(lags), served.server.feed.loop)
        served.await_rows()
        seconds, busy = time.perf_counter() - begun, time.process_time() - cpu
        probing.cancel()
        gc.collect()
        used = process.memory_info().rss - before
    return [
        Figure("backfill, start to served", "rows/s", rows / seconds, target=Target(400_000, at_least=True)),
        Figure("backfill, per second of processor time", "rows/s", rows / busy),
        Figure("memory, mirror off", "bytes/row", used / rows, target=Target(500)),
        Figure("event loop lag in backfill, p99", "ms", percentile(lags, 99) * 1000, target=Target(10)),
        Figure("event loop lag in backfill, worst", "ms", max(lags) * 1000),
    ]


def windows(served: Served) -> list[Figure]:
    """One window in the table's own order, and windows from the mirror."""
    table = served.server.catalogue.find(Grant("bench", Role.ADMIN), TABLE)
    times = []
    for number in range(200):
        begun = time.perf_counter()
        keys, rows = table.window(number * 4_000 % served.rows, 300)
        snapshot_body("g1", len(table), 0, table.wire, keys, rows)
        times.append(time.perf_counter() - begun)
    figures = [
        Figure("window of 300 in natural order, p50", "ms", statistics.median(times) * 1000, target=Target(1)),
        Figure("the mirror's making", "ms", served.make_mirror() * 1000),
    ]
    for name, query in _QUERIES.items():
        times = [served.get({"size": str(300 + number), **query}) for number in range(7)]
        median = f"{name}, 300 of {served.rows:,} rows, median"
        figures += [
            Figure(median, "ms", statistics.median(times) * 1000, target=Target(100)),
            Figure(f"{name}, the first time", "ms", times[0] * 1000),
        ]
    return figures


def charts(served: Served) -> list[Figure]:
    """Pictures of the whole table, and what a viewer of live rows notices while others keep asking for them."""
    served.make_mirror()
    figures = [
        Figure(f"chart of {column}, {served.rows:,} rows", "ms", served.get({"column": column}, "/chart") * 1000)
        for column in _CHARTED
    ]
    lags: list[float] = []
    probing = asyncio.run_coroutine_threadsafe(probe(lags), served.server.feed.loop)
    asked, begun = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - begun) < _CHARTING_S:
        served.get({"column": _CHARTED[0]}, "/chart")
        asked += 1
    probing.cancel()
    unending = "charts asked for without a pause"
    return [
        *figures,
        Figure(f"{unending}, answers", "answers/s", asked / elapsed),
        Figure(f"{unending}, event loop lag p99", "ms", percentile(lags, 99) * 1000, target=Target(10)),
    ]


def latency(served: Served) -> list[Figure]:
    """From the changelog's producer to a WebSocket client, 1,000 changed rows a second."""
    seconds = served.stage.sizes.seconds
    ready, stopping = signal_between(), signal_between()
    viewer = Helper("the viewer", timing_viewer, ready, served.port, stopping)
    await_ready(ready, "the viewer")
    begun, number = time.perf_counter(), 0
    while (now := time.perf_counter() - begun) < seconds + 1:
        if now > seconds:
            stopping.set()
        while number < now * RATE:
            served.change(number % WINDOW, number, f"|{time.time():.6f}")
            number += 1
        time.sleep(0.0005)
    found = [late for _, late in viewer.result(PATIENCE_S)]
    name = f"changelog to client at {RATE:,} rows/s"
    return [
        Figure(f"{name}, p50", "ms", percentile(found, 50) * 1000, target=Target(3)),
        Figure(f"{name}, p99", "ms", percentile(found, 99) * 1000, target=Target(20)),
    ]


def fan_out(served: Served) -> list[Figure]:
    """Many viewers of one window that changes 20 times a second."""
    seconds = served.stage.sizes.seconds
    ready, counting = signal_between(), signal_between()
    crowd = Helper("the crowd", watch, ready, counting, [served.port], _VIEWERS, seconds)
    await_ready(ready, "the crowd", PATIENCE_S)

    def change(number: int) -> None:
        for row in range(10):
            served.change(row, number, f"|{number}")

    with repeating(0.05, change):
        counting.set()
        busy = cores([psutil.Process()], seconds)
        received = crowd.result(PATIENCE_S)
    name = f"{_VIEWERS:,} viewers of one window"
    return [
        Figure(f"{name}, server and producer", "cores", busy, target=Target(0.5)),
        Figure(f"{name}, frames each", "frames/s", received / _VIEWERS),
    ]


async def probe(lags: list[float]) -> None:
    """How late the event loop is, again and again."""
    while True:
        begun = time.perf_counter()
        await asyncio.sleep(0.001)
        lags.append(time.perf_counter() - begun - 0.001)


async def subscribed(port: int, stack: AsyncExitStack, tables: Sequence[str] = (TABLE,)) -> ClientConnection:
    url = f"ws://127.0.0.1:{port}/ws"
    socket = await stack.enter_async_context(connect(url, compression=None, max_size=None))
    await socket.send(json.dumps({"op": "auth", "psk": KEY, "protocol": 1}))
    await socket.recv()
    for id, table in enumerate(tables, 1):
        await socket.send(json.dumps({"op": "subscribe", "id": id, "table": table, "offset": 0, "size": WINDOW}))
        await socket.recv()
    return socket


def timing_viewer(ready: Signal, port: int, stopping: Signal) -> list[tuple[float, float]]:
    """When each change was made that came, and how much later it came."""

    async def view() -> list[tuple[float, float]]:
        async with AsyncExitStack() as stack:
            socket = await subscribed(port, stack)
            ready.set()
            found, begun = [], time.time()
            while not stopping.is_set():
                frame = json.loads(await socket.recv())
                now = time.time()
                rows = frame["rows"] if frame["ev"] == "snapshot" else [row for _, _, row in frame.get("rows", ())]
                sent = [float(row[1].partition("|")[2] or 0) for row in rows]
                found += [(at, now - at) for at in sent if at >= begun]
            return found

    return asyncio.run(view())


def watch(ready: Signal, counting: Signal, ports: Sequence[int], viewers: int, seconds: float) -> float:
    """How many frames a second so many viewers got together, at servers in turn."""
    received = 0

    async def read(socket: ClientConnection) -> None:
        nonlocal received
        async for _ in socket:
            received += 1

    async def view() -> float:
        async with AsyncExitStack() as stack:
            sockets = [await subscribed(ports[number % len(ports)], stack) for number in range(viewers)]
            reading = [asyncio.create_task(read(socket)) for socket in sockets]
            ready.set()
            await asyncio.to_thread(counting.wait)
            before, begun = received, time.perf_counter()
            await asyncio.sleep(seconds)
            # A busy machine lets one sleep longer.
            rate = (received - before) / (time.perf_counter() - begun)
            for task in reading:
                task.cancel()
            return rate

    return asyncio.run(view())


def _alone(function: Callable[..., Measured], *arguments: Callable[[Served], list[Figure]]) -> Measure:
    """The function in a fresh process, over rows that are there."""

    def measure(stage: Stage) -> Measured:
        fill(stage, stage.sizes.rows)
        return in_process("the server's process", 2 * PATIENCE_S, function, stage, *arguments)

    return measure


def _shown(stage: Stage, measure: Callable[[Served], list[Figure]]) -> list[Figure]:
    with Served(stage, stage.sizes.rows) as served:
        served.await_rows()
        return measure(served)


def _views(stage: Stage) -> Measured:
    # It measures with what is in here.
    from views import views

    return views(stage)


SUITE = Suite(
    title="the server of liveboard",
    file="serving.json",
    measures={
        "backfill": _alone(backfill),
        "windows": _alone(_shown, windows),
        "charts": _alone(_shown, charts),
        "latency": _alone(_shown, latency),
        "fan_out": _alone(_shown, fan_out),
        "views": _alone(_views),
    },
    seconds=10,
)
