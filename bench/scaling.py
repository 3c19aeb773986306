"""What one more server, viewer, change or row costs, and how fast a server starts again with its snapshot."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from unittest.mock import patch

import psutil
from processes import Helper, await_ready, await_until, in_process, repeating, signal_between
from report import Figure, percentile
from serving import KEY, Served, fill, probe, watch
from stage import PATIENCE_S, Stage, Suite, cores

from liveboard.serving import snapshots

_CHANGED_ROWS = 10
_EVERY_S = 0.05
# How many records of a row a changelog has, where rows change and Kafka has not tidied up yet.
_TIMES = 5
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


def _memory(processes: Sequence[psutil.Process]) -> int:
    return sum(int(process.memory_info().rss) for process in processes)


@contextmanager
def _servers(stage: Stage, count: int) -> Iterator[Sequence[tuple[psutil.Process, int]]]:
    with ExitStack() as running:
        servers = []
        for number in range(count):
            port = 20_000 + os.getpid() % 20_000 + number
            environment = {
                "LIVEBOARD_KAFKA_BOOTSTRAP_SERVERS": stage.bootstrap,
                "LIVEBOARD_STORAGE_DIR": str(stage.directory / f"server-{port}"),
                "LIVEBOARD_SERVER_PORT": str(port),
                "LIVEBOARD_SERVER_PSK": KEY,
                "LIVEBOARD_BOARD": _BOARD,
            }
            command = [sys.executable, "-m", "liveboard", "serve"]
            process = psutil.Popen(command, env={**os.environ, **environment}, stderr=subprocess.DEVNULL)
            running.callback(process.wait)
            running.callback(process.kill)
            servers.append((process, port))
        for _, port in servers:
            await_until(lambda port=port: _is_ready(port), "a server", PATIENCE_S, 0.1)  # type: ignore[misc]
        yield servers


def _is_ready(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz") as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


SUITE = Suite(
    title="more servers",
    file="scaling.json",
    measures={"restart": restart, "replicas": replicas},
    seconds=10,
)
