"""Measures the live-table server on a broker of its own, with viewers in processes of their own.

What was measured is kept in bench/serving.json, with the load that the machine had before.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import multiprocessing
import shlex
import statistics
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import psutil
from confluent_kafka import Producer
from report import Result, as_json, keep, machine, show
from websockets.asyncio.client import ClientConnection, connect

from liveboard.config import Secret, ServerSettings
from liveboard.contract.frames import Role, snapshot_body
from liveboard.contract.names import STATUS_TOPIC, changelog_topic
from liveboard.contract.schema import TS, Column
from liveboard.contract.status import STATUS_KEY, BoardStatus, GenerationRecord, Phase, State, Wiring
from liveboard.kafka.admin import Admin
from liveboard.kafka.broker import Broker
from liveboard.serving.auth import Grant
from liveboard.serving.server import LiveServer

_HERE = Path(__file__).parent
KEY = "bench"
_TABLE = "final_ui"
_COLUMNS = (
    Column("userId", "string"),
    Column("name", "string"),
    Column("email", "string"),
    Column("age", "bigint"),
    Column("accountType", "string"),
    Column("balance", "double"),
    TS,
)
_QUERIES: dict[str, dict[str, str]] = {
    "sort by a number": {"sort": '[["balance","desc"]]'},
    "sort by a text": {"sort": '[["name","asc"]]'},
    "sort by a text, offset 500,000": {"sort": '[["name","asc"]]', "offset": "500000"},
    "filter and count": {"filter": '[["age",">",90],["accountType","=","gold"]]'},
    "search": {"search": "77 lovelace"},
}
_CHARTED = ("balance", "age", "accountType", "name")
_CHARTING_S = 5.0


def joined_row(number: int, ts: str, mark: str = "") -> bytes:
    """A row of the table; the mark makes its name another one."""
    values: list[Any] = [
        f"user-{number:08d}",
        f"Ada {number * 7919 % 100_000} Lovelace{mark}",
        f"ada.{number}@example.com",
        number * 31 % 100,
        ("gold", "silver", "basic")[number % 3],
        number * 7919 % 1_000_003 / 7,
        ts,
    ]
    return json.dumps(values, separators=(",", ":")).encode()


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class Stage:
    """A broker with one generation of many rows, and a server that shows it."""

    def __init__(self, bootstrap: str, rows: int) -> None:
        self.rows = rows
        self.topic = changelog_topic("g1", _TABLE)
        self.producer = Producer(
            {"bootstrap.servers": bootstrap, "linger.ms": 0, "queue.buffering.max.messages": 200_000, "log_level": 0}
        )
        admin = Admin({"bootstrap.servers": bootstrap})
        admin.create_changelogs([self.topic, STATUS_TOPIC])
        now = time.time() - rows / 1000
        for number in range(rows):
            while True:
                try:
                    self.producer.produce(self.topic, joined_row(number, _time(now + number / 1000)), f"0-{number}")
                    break
                except BufferError:
                    self.producer.poll(0.05)
        self.producer.flush()
        record = GenerationRecord(
            state=State.LIVE, wiring=Wiring({}, {}), tables={_TABLE: _COLUMNS}, complete_at={_TABLE: rows}
        )
        self._status = BoardStatus(sources=("users",), live="g1", generations={"g1": record}, phase=Phase.LIVE)
        self.announce()
        self.producer.flush()
        self.server = LiveServer(ServerSettings(port=0, psk=Secret(KEY)), {"bootstrap.servers": bootstrap}, "control")
        self.port = int(self.server.address.rpartition(":")[2])
        self._stopping = threading.Event()
        self._started = threading.Event()
        self._thread = threading.Thread(target=self.server.run, args=(self._stopping, self._started.set))

    def announce(self) -> None:
        """Says, as an orchestrator does again and again, that someone fills the table."""
        self.producer.produce(STATUS_TOPIC, self._status.encode(), STATUS_KEY)

    def start(self) -> asyncio.AbstractEventLoop:
        """Starts the server; gives its event loop."""
        self._thread.start()
        self._started.wait()
        return self.server.feed.loop

    def stop(self) -> None:
        """Stops the server."""
        self._stopping.set()
        self._thread.join()
        self.producer.flush()


def backfill(stage: Stage) -> list[Result]:
    """From the start of the server until the table is there."""
    process = psutil.Process()
    gc.collect()
    before = process.memory_info().rss
    lags: list[float] = []
    begun, cpu = time.perf_counter(), time.process_time()
    loop = stage.start()
    probing = asyncio.run_coroutine_threadsafe(_probe(lags), loop)
    while stage.server.hub.catalogue.live is None:
        time.sleep(0.01)
    seconds, busy = time.perf_counter() - begun, time.process_time() - cpu
    probing.cancel()
    gc.collect()
    used = process.memory_info().rss - before
    return [
        Result("backfill, start to served", stage.rows / seconds, "rows/s", 400_000, at_least=True),
        Result("backfill, per second of processor time", stage.rows / busy, "rows/s"),
        Result("memory, mirror off", used / stage.rows, "bytes/row", 500),
        Result("event loop lag in backfill, p99", _percentile(lags, 99) * 1000, "ms", 10),
        Result("event loop lag in backfill, worst", max(lags) * 1000, "ms"),
    ]


def windows(stage: Stage) -> list[Result]:
    """One window in the table's own order, and windows from the mirror."""
    table = stage.server.hub.catalogue.find(Grant("bench", Role.ADMIN), _TABLE)
    times = []
    for number in range(200):
        begun = time.perf_counter()
        keys, rows = table.window(number * 4_000 % stage.rows, 300)
        snapshot_body("g1", len(table), 0, table.wire, keys, rows)
        times.append(time.perf_counter() - begun)
    results = [Result("window of 300 in natural order, p50", statistics.median(times) * 1000, "ms", 1)]
    begun = time.perf_counter()
    _get(stage, {"sort": '[["age","asc"]]', "size": "1"})
    results.append(Result("the mirror's making", (time.perf_counter() - begun) * 1000, "ms"))
    for name, query in _QUERIES.items():
        times = []
        for number in range(7):
            begun = time.perf_counter()
            _get(stage, {"size": str(300 + number), **query})
            times.append(time.perf_counter() - begun)
        results += [
            Result(f"{name}, 300 of {stage.rows:,} rows, median", statistics.median(times) * 1000, "ms", 100),
            Result(f"{name}, the first time", times[0] * 1000, "ms"),
        ]
    return results


def charts(stage: Stage) -> list[Result]:
    """Pictures of the whole table, and what a viewer of live rows notices while others keep asking for them."""
    _get(stage, {"sort": '[["age","asc"]]', "size": "1"})  # makes the mirror
    results = []
    for column in _CHARTED:
        begun = time.perf_counter()
        _get_chart(stage, column)
        results.append(Result(f"chart of {column}, {stage.rows:,} rows", (time.perf_counter() - begun) * 1000, "ms"))
    lags: list[float] = []
    probing = asyncio.run_coroutine_threadsafe(_probe(lags), stage.server.feed.loop)
    asked, begun = 0, time.perf_counter()
    while time.perf_counter() - begun < _CHARTING_S:
        _get_chart(stage, _CHARTED[0])
        asked += 1
    elapsed = time.perf_counter() - begun
    probing.cancel()
    return [
        *results,
        Result("charts asked for without a pause, answers", asked / elapsed, "answers/s"),
        Result("charts asked for without a pause, event loop lag p99", _percentile(lags, 99) * 1000, "ms", 10),
    ]


def latency(stage: Stage, seconds: float) -> list[Result]:
    """From the changelog's producer to a WebSocket client, 1,000 changed rows a second."""
    parent, child = multiprocessing.Pipe()
    viewer = multiprocessing.get_context("spawn").Process(target=_timing_viewer, args=(stage.port, seconds, child))
    viewer.start()
    parent.recv()
    begun, number = time.perf_counter(), 0
    while (now := time.perf_counter() - begun) < seconds + 1:
        while number < now * 1000:
            row = number % 300
            stage.producer.produce(stage.topic, joined_row(row, _time(0), f"|{time.time():.6f}"), f"0-{row}")
            number += 1
        stage.producer.poll(0)
        time.sleep(0.0005)
    found: list[float] = parent.recv()
    viewer.join()
    return [
        Result("changelog to client at 1,000 rows/s, p50", _percentile(found, 50) * 1000, "ms", 3),
        Result("changelog to client at 1,000 rows/s, p99", _percentile(found, 99) * 1000, "ms", 20),
    ]


def fan_out(stage: Stage, viewers: int, seconds: float) -> list[Result]:
    """Many viewers of one window that changes 20 times a second."""
    parent, child = multiprocessing.Pipe()
    crowd = multiprocessing.get_context("spawn").Process(target=_crowd, args=(stage.port, viewers, seconds, child))
    crowd.start()
    parent.recv()
    process = psutil.Process()
    stopping = threading.Event()

    def tick() -> None:
        number = 0
        while not stopping.wait(0.05):
            number += 1
            for row in range(10):
                stage.producer.produce(stage.topic, joined_row(row, _time(0), f"|{number}"), f"0-{row}")
            stage.producer.poll(0)

    ticking = threading.Thread(target=tick)
    ticking.start()
    parent.send("count")
    before, begun = process.cpu_times(), time.perf_counter()
    received: int = parent.recv()
    after, elapsed = process.cpu_times(), time.perf_counter() - begun
    stopping.set()
    ticking.join()
    crowd.join()
    busy = (after.user + after.system - before.user - before.system) / elapsed
    return [
        Result(f"{viewers:,} viewers of one window, server and producer", busy, "cores", 0.5),
        Result(f"{viewers:,} viewers of one window, frames each", received / viewers / seconds, "frames/s"),
    ]


async def _probe(lags: list[float]) -> None:
    """How late the event loop is, again and again."""
    while True:
        begun = time.perf_counter()
        await asyncio.sleep(0.001)
        lags.append(time.perf_counter() - begun - 0.001)


def _get_chart(stage: Stage, column: str) -> Any:
    return _get(stage, {"column": column}, "/chart")


def _get(stage: Stage, parameters: dict[str, str], of: str = "") -> Any:
    url = f"http://127.0.0.1:{stage.port}/api/tables/{_TABLE}{of}?{urlencode(parameters)}"
    with urllib.request.urlopen(urllib.request.Request(url, headers={"Authorization": f"Bearer {KEY}"})) as answer:
        return answer.read()


def _percentile(values: Sequence[float], percent: int) -> float:
    return sorted(values)[min(len(values) - 1, len(values) * percent // 100)]


async def _subscribed(port: int, stack: AsyncExitStack) -> ClientConnection:
    url = f"ws://127.0.0.1:{port}/ws"
    socket = await stack.enter_async_context(connect(url, compression=None, max_size=None))
    await socket.send(json.dumps({"op": "auth", "psk": KEY, "protocol": 1}))
    await socket.recv()
    await socket.send(json.dumps({"op": "subscribe", "id": 1, "table": _TABLE, "offset": 0, "size": 300}))
    await socket.recv()
    return socket


def _timing_viewer(port: int, seconds: float, pipe: Connection) -> None:
    async def view() -> list[float]:
        async with AsyncExitStack() as stack:
            socket = await _subscribed(port, stack)
            pipe.send("ready")
            found, end = [], time.time() + seconds
            while time.time() < end:
                frame = json.loads(await socket.recv())
                now = time.time()
                rows = frame["rows"] if frame["ev"] == "snapshot" else [row for _, _, row in frame.get("rows", ())]
                found += [now - float(row[1].partition("|")[2]) for row in rows if "|" in row[1]]
            return found

    pipe.send(asyncio.run(view()))


def _crowd(port: int, viewers: int, seconds: float, pipe: Connection) -> None:
    async def view() -> int:
        received = 0

        async def read(socket: ClientConnection) -> None:
            nonlocal received
            async for _ in socket:
                received += 1

        async with AsyncExitStack() as stack:
            sockets = [await _subscribed(port, stack) for _ in range(viewers)]
            reading = [asyncio.create_task(read(socket)) for socket in sockets]
            pipe.send("ready")
            await asyncio.to_thread(pipe.recv)
            before = received
            await asyncio.sleep(seconds)
            pipe.send(received - before)
            for task in reading:
                task.cancel()
        return received

    asyncio.run(view())


def main() -> int:
    """Runs all measures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--viewers", type=int, default=1_000)
    parser.add_argument("--seconds", type=float, default=10.0)
    names = ("backfill", "windows", "charts", "latency", "fan_out")
    parser.add_argument("--only", nargs="+", choices=names, help="these measures; those before stay as they were kept")
    parser.add_argument("--output", type=Path, default=_HERE / "serving.json", metavar="FILE")
    options = parser.parse_args()
    about = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": shlex.join(sys.argv),
        "machine": machine(),
        "sizes": {"rows": options.rows, "viewers": options.viewers, "seconds": options.seconds},
    }
    measured: dict[str, list[Result]] = {}
    with tempfile.TemporaryDirectory() as directory, Broker(Path(directory)) as broker:
        stage = Stage(broker.bootstrap_servers, options.rows)
        steps: dict[str, Callable[[], list[Result]]] = {
            "windows": lambda: windows(stage),
            "charts": lambda: charts(stage),
            "latency": lambda: latency(stage, options.seconds),
            "fan_out": lambda: fan_out(stage, options.viewers, options.seconds),
        }
        # In any case: it starts the server.
        filled = backfill(stage)
        try:
            if not options.only or "backfill" in options.only:
                measured["backfill"] = filled
            for name in options.only or steps:
                if name in steps:
                    measured[name] = steps[name]()
        finally:
            stage.stop()
            kept = {name: {**about, "results": list(map(as_json, results))} for name, results in measured.items()}
            keep(options.output, kept)
    show([result for results in measured.values() for result in results], "liveboard server")
    print(f"kept in {options.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
