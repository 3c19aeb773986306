"""What one more server, viewer, change or row costs, and how fast a server starts again with its snapshot."""

from __future__ import annotations

import asyncio
import os
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from multiprocessing.synchronize import Event
from pathlib import Path
from unittest.mock import patch

import psutil
from confluent_kafka import Producer
from ports import closed_port
from processes import Helper, await_ready, await_until, in_process, repeating, signal_between
from report import Figure, percentile
from serving import KEY, TOPIC, Served, changed_row, fill, probe, watch
from stage import PATIENCE_S, Stage, Suite, cores

from liveboard.contract.errors import LiveboardError
from liveboard.kafka.admin import total
from liveboard.serving import snapshots

_CHANGED_ROWS = 10
_EVERY_S = 0.05
# How many records of a row a changelog has, where rows change and Kafka has not tidied up yet.
_TIMES = 5
_DIFFERENT = 20_000
_BOARD = '[sources.users]\ntopic = "users"\nschema = "userId string"\ntable = "users_ui"'


def restart(stage: Stage) -> list[Figure]:
    """A server that starts without and with a snapshot, over rows that have changed never and several times since Kafka
    tidied up; and what others notice while a snapshot is written."""
    fill(stage, stage.sizes.rows)
    figures = [*_restart(stage, 1)]
    for change in range(1, _TIMES):
        fill(stage, stage.sizes.rows, change)
    return [*figures, *_restart(stage, _TIMES)]


def _restart(stage: Stage, times: int) -> list[Figure]:
    rows, storage = stage.sizes.rows, stage.directory / f"server-storage-{times}"
    plain_s, plain_cpu_s = in_process("a server", 2 * PATIENCE_S, _start, stage, None)
    writing = in_process("the server that writes", 2 * PATIENCE_S, _write, stage, storage)
    snapshot_s, snapshot_cpu_s = in_process("the server with a snapshot", 2 * PATIENCE_S, _start, stage, storage)
    size = sum(file.stat().st_size for file in (storage / "server").iterdir())
    what = f"{rows:,} rows, {times} record{'s' if times > 1 else ''} each"
    return [
        Figure(f"start with {what}, from the changelog", "s", plain_s),
        Figure(f"start with {what}, from a snapshot", "s", snapshot_s),
        Figure(f"start with {what}, from the changelog, processor", "s", plain_cpu_s),
        Figure(f"start with {what}, from a snapshot, processor", "s", snapshot_cpu_s),
        *([Figure("size of a snapshot", "bytes/row", size / rows), *writing] if times == 1 else []),
    ]


def _start(stage: Stage, storage: Path | None) -> tuple[float, float]:
    """The seconds until the table is there, and those of the processor."""
    served = Served(stage, stage.sizes.rows, storage=storage)
    begun, cpu_s = time.perf_counter(), time.process_time()
    with served:
        served.await_rows()
        return time.perf_counter() - begun, time.process_time() - cpu_s


def _write(stage: Stage, storage: Path) -> list[Figure]:
    process, lags = psutil.Process(), list[float]()
    with Served(stage, stage.sizes.rows, storage=storage) as served:
        served.await_rows()
        before, begun, cpu_s = process.memory_info().rss, time.perf_counter(), time.process_time()
        probing = asyncio.run_coroutine_threadsafe(probe(lags), served.server.feed.loop)
        with patch.object(snapshots, "EVERY_S", 0.0), patch.object(snapshots, "WORTH_RECORDS", 1):
            written = storage / "server"
            await_until(lambda: any(written.glob("*.rows")), "a snapshot", PATIENCE_S, pause_s=0.01)
        seconds, busy_s = time.perf_counter() - begun, time.process_time() - cpu_s
        used = process.memory_info().rss - before
        probing.cancel()
    return [
        Figure("writing a snapshot", "s", seconds),
        Figure("writing a snapshot, processor time", "s", busy_s),
        Figure("more memory after writing it", "MB", used / 1e6),
        Figure("event loop lag while it is written, p99", "ms", percentile(lags, 99) * 1000),
        Figure("event loop lag while it is written, worst", "ms", max(lags) * 1000),
    ]


def replicas(stage: Stage) -> list[Figure]:
    """The same viewers at one, two and four servers: one window of 300 rows, ten of them changed 20 times a second."""
    rows, viewers, seconds = stage.sizes.rows // 10, stage.sizes.replica_viewers, stage.sizes.seconds
    fill(stage, stage.sizes.rows)
    board = Served(stage, rows)
    figures = []

    def change(number: int) -> None:
        for row in range(_CHANGED_ROWS):
            board.change(row, number, f"|{number}")

    for count in stage.sizes.replicas:
        with _servers(stage, count) as servers, repeating(_EVERY_S, change):
            board.announce()
            processes = [process for process, _ in servers]
            alone, before = cores(processes, seconds), _memory(processes)
            ready, counting = signal_between(), signal_between()
            ports = [port for _, port in servers]
            crowd = Helper("the viewers", watch, ready, counting, ports, viewers, seconds)
            await_ready(ready, "the viewers", PATIENCE_S)
            counting.set()
            busy, used = cores(processes, seconds), _memory(processes) - before
            frames = crowd.result(PATIENCE_S)
        name = f"{count} server{'s' if count > 1 else ''}"
        figures += [
            Figure(f"{name}, no viewers, all together", "cores", alone),
            Figure(f"{name}, {viewers} viewers, all together", "cores", busy),
            Figure(f"{name}, frames to all viewers", "frames/s", frames),
            Figure(f"{name}, processor time of a frame", "µs", (busy - alone) / frames * 1e6),
            Figure(f"{name}, memory of a viewer", "kB", used / viewers / 1e3),
        ]
    return figures


def changes(stage: Stage) -> list[Figure]:
    """What a server without viewers takes to apply changes of rows, at several rates, and what they are in Kafka."""
    rows, seconds = stage.sizes.rows, stage.sizes.seconds
    fill(stage, rows)
    board, figures = Served(stage, rows), []
    with _servers(stage, 1) as servers:
        board.announce()
        [process] = [process for process, _ in servers]
        idle = cores([process], seconds)
        for rate in stage.sizes.changes:
            ready = signal_between()
            producer = Helper("the producer", _produce_changes, ready, stage.bootstrap, rows, rate, seconds)
            await_ready(ready, "the producer", PATIENCE_S)
            busy = cores([process], seconds)
            produced = producer.result(PATIENCE_S) / seconds
            figures += [
                Figure(f"a server at {rate:,} changes/s", "cores", busy),
                Figure(f"a server at {rate:,} changes/s, each", "µs", (busy - idle) / produced * 1e6),
            ]
    logs = [file.stat().st_size for file in stage.directory.rglob(f"{TOPIC}-0/*.log")]
    records = total(stage.admin.offsets({TOPIC: 1}, "latest"))
    return [*figures, Figure("a changed row in Kafka", "bytes", sum(logs) / records)]


def _produce_changes(ready: Event, bootstrap: str, rows: int, rate: int, seconds: float) -> int:
    """How many were produced; in another process, so that what it takes does not count."""
    events = [changed_row(number * 7919 % rows, number, f"|{number}") for number in range(_DIFFERENT)]
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 1, "log_level": 0})
    producer.list_topics(timeout=PATIENCE_S)
    ready.set()
    produced, began = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - began) < seconds:
        for number in range(produced, int(elapsed * rate)):
            event = events[number % _DIFFERENT]
            producer.produce(event.topic, event.value, event.key)
            producer.poll(0)
            produced += 1
        time.sleep(0.002)
    producer.flush(PATIENCE_S)
    return produced


def _memory(processes: Sequence[psutil.Process]) -> int:
    return sum(int(process.memory_info().rss) for process in processes)


@contextmanager
def _servers(stage: Stage, count: int) -> Iterator[Sequence[tuple[psutil.Process, int]]]:
    with ExitStack() as running:
        servers = []
        for _ in range(count):
            port = closed_port()
            log = stage.directory / f"server-{port}.out"
            environment = {
                "LIVEBOARD_KAFKA_BOOTSTRAP_SERVERS": stage.bootstrap,
                "LIVEBOARD_STORAGE_DIR": str(stage.directory / f"server-{port}"),
                "LIVEBOARD_SERVER_PORT": str(port),
                "LIVEBOARD_SERVER_PSK": KEY,
                "LIVEBOARD_BOARD": _BOARD,
            }
            command = [sys.executable, "-m", "liveboard", "serve"]
            with log.open("wb") as output:
                process = psutil.Popen(command, env={**os.environ, **environment}, stdout=output, stderr=output)
            running.callback(process.wait)
            running.callback(process.kill)
            servers.append((process, port))
            await_until(partial(_is_ready, process, port, log), "a server", PATIENCE_S, 0.1)
        yield servers


def _is_ready(process: psutil.Popen, port: int, log: Path) -> bool:
    if process.poll() is not None:
        raise LiveboardError(f"a server ended: {log.read_text()[-1000:]}")
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz") as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


SUITE = Suite(
    title="more servers",
    file="scaling.json",
    measures={"restart": restart, "replicas": replicas, "changes": changes},
    seconds=10,
)
