"""How long a swap takes: from the control message to the new generation live, beside one that is followed."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from load import History, produce
from processes import say
from report import Result
from stage import PATIENCE_S, WHOLE, Stage, fresh_topics

from liveboard.config import load as load_settings
from liveboard.contract.status import Wiring
from liveboard.errors import LiveboardError
from liveboard.kafka.admin import Admin
from liveboard.kafka.board import StatusReader
from liveboard.orchestrator.generations import configured
from liveboard.swap import send

_ROWS = 1_000
_WARM_UPS = 3
_MOST_S = 5.0


def swap(stage: Stage) -> list[Result]:
    """Swaps between topics of a thousand rows, each to topics that were never read before."""
    wirings = [_filled(stage) for _ in range(_WARM_UPS + stage.sizes.swaps + 1)]
    client_config = {"bootstrap.servers": stage.bootstrap}
    with _pipeline(stage, wirings[0]) as process, StatusReader(client_config) as reader:
        _await(reader, wirings[0], process)
        times = []
        for number, wiring in enumerate(wirings[1:], 1):
            say(f"swap {number} of {len(wirings) - 1}")
            started = time.monotonic()
            send(client_config, load_settings(None, {}).control.topic, _message(wiring))
            _await(reader, wiring, process)
            times.append(time.monotonic() - started)
    return [
        Result(f"swap, topics of {_ROWS:,} rows, first", times[0], "s"),
        Result(f"swap, topics of {_ROWS:,} rows, warm", statistics.median(times[_WARM_UPS:]), "s", _MOST_S),
    ]


def _filled(stage: Stage) -> Wiring:
    board = fresh_topics(stage, WHOLE)
    users, accounts = (board.sources[name].topic for name in ("users", "accounts"))
    produce(stage.bootstrap, History(users, accounts, _ROWS // 10, _ROWS - _ROWS // 10).events())
    return configured(board)


def _message(wiring: Wiring) -> bytes:
    topics = ",".join(f'"{source}":"{topic}"' for source, topic in wiring.topics.items())
    return f'{{"topics":{{{topics}}}}}'.encode()


@contextmanager
def _pipeline(stage: Stage, wiring: Wiring) -> Iterator[subprocess.Popen[bytes]]:
    directory = Path(tempfile.mkdtemp(prefix="swap-", dir=stage.directory))
    environment = {
        **os.environ,
        "LIVEBOARD_KAFKA_BOOTSTRAP_SERVERS": stage.bootstrap,
        "LIVEBOARD_STORAGE_DIR": str(directory),
        # So that every swap builds, and only two generations are there at a time.
        "LIVEBOARD_CONTROL_RETIRE_AFTER": "0 s",
        **{f"LIVEBOARD_BOARD_SOURCES_{source.upper()}_TOPIC": topic for source, topic in wiring.topics.items()},
    }
    with (directory / "pipeline.out").open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "liveboard", "pipeline"], env=environment, stdout=output, stderr=output
        )
    try:
        yield process
    finally:
        process.terminate()
        process.wait(PATIENCE_S)
        admin = Admin({"bootstrap.servers": stage.bootstrap})
        admin.delete(topic for topic in admin.partitions() if topic.startswith("liveboard"))


def _await(reader: StatusReader, wiring: Wiring, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline and process.poll() is None:
        kept = reader.look(0.01)
        live = kept.status.generations.get(kept.status.live or "") if kept else None
        if live and live.wiring == wiring:
            return
    raise LiveboardError(f"the swap to {wiring.topics} did not become live")
