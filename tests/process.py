"""`liveboard pipeline` as a process of its own, to be watched, killed and started again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import psutil
from harness import PATIENCE_S, QUICK_SPARK, until

from liveboard.contract.board import Board, Source
from liveboard.contract.paths import written_path
from liveboard.contract.schema import Column


class Pipeline:
    """A running pipeline with a storage directory of its own."""

    def __init__(
        self, bootstrap: str, board: Board, directory: Path, options: tuple[str, ...] = (), /, **environment: str
    ) -> None:
        self._log = directory / "pipeline.out"
        self._log.touch()
        self.environment = {
            **os.environ,
            "LIVEBOARD_KAFKA_BOOTSTRAP_SERVERS": bootstrap,
            "LIVEBOARD_STORAGE_DIR": str(directory / "storage"),
            # With each, Spark plans the whole query again. Tests of crashes have more of them.
            "LIVEBOARD_SPARK_CHECKPOINT_INTERVAL": "1 minute",
            "LIVEBOARD_SPARK_CONF": spark_conf(QUICK_SPARK),
            "LIVEBOARD_BOARD": board_toml(board),
            **environment,
        }
        self.storage = Path(self.environment["LIVEBOARD_STORAGE_DIR"])
        self.start(*options)

    def start(self, *options: str) -> None:
        """Starts it; it need not be ready when this returns."""
        self._said = self._log.stat().st_size
        with self._log.open("ab") as log:
            self._process = psutil.Popen(
                [sys.executable, "-m", "liveboard", "pipeline", *options],
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    @property
    def checkpoints(self) -> Path:
        """Where those of its generations are, each in a directory of its own."""
        shared = self.environment.get("LIVEBOARD_STORAGE_CHECKPOINTS")
        return next(Path(shared).iterdir()) if shared else self.storage / "pipeline"

    def is_running(self) -> bool:
        """Whether it has not ended."""
        return bool(self._process.poll() is None)

    def processes(self) -> list[psutil.Process]:
        """It and all that it has started."""
        return [self._process, *self._process.children(recursive=True)]

    def said(self) -> str:
        """What it has printed since its start."""
        return self._log.read_bytes()[self._said :].decode()

    def wait_for(self, *words: str) -> None:
        """Waits until it has said one of these."""
        until(lambda: any(word in self.said() for word in words) or self._ended(), " or ".join(words))

    def wait_until_live(self) -> None:
        """Waits until the tables follow the topics."""
        self.wait_for("topics set ", " is live")

    def _ended(self) -> bool:
        assert self._process.poll() is None, f"it ended: {self.said()}"
        return False

    def pause(self) -> list[psutil.Process]:
        """Stops it and all that it has started where they are; returns them, to be resumed."""
        family = self.processes()
        for process in family:
            process.suspend()
        return family

    def kill(self, what: str) -> None:
        """kill -9 of the Python process, of the JVM, or without a name of both; they are gone when this returns."""
        family = self.processes()
        victims = [process for process in family if what in process.name()] or [self._process]
        for victim in victims:
            victim.kill()
        _, alive = psutil.wait_procs(family, timeout=PATIENCE_S)
        assert alive == [], f"left behind after kill -9 of {what}"

    def close(self) -> None:
        """Leaves nothing running, also after a test that failed."""
        if self._process.is_running():
            self.kill("python")

    def stop(self) -> None:
        """A clean stop that leaves no process behind."""
        family = self.processes()
        self._process.send_signal(signal.SIGTERM)
        _, alive = psutil.wait_procs(family, timeout=PATIENCE_S)
        assert alive == []
        assert self._process.returncode == 0, self.said()


def spark_conf(conf: Mapping[str, str]) -> str:
    """The settings as the environment takes them."""
    return "\n".join(f"{name} = {json.dumps(value)}" for name, value in conf.items())


def board_toml(board: Board) -> str:
    """The board as the environment takes it."""
    tables = [("sources", name, source) for name, source in board.sources.items()]
    tables += [("joins", name, join) for name, join in board.joins.items()]  # type: ignore[misc]
    lines = [f"name = {json.dumps(board.name)}"]
    for kind, name, table in tables:
        lines.append(f"[{kind}.{name}]")
        values = {
            key: value
            for key, value in asdict(table).items()
            if key not in ("name", "columns") and value not in ("", None)
        }
        lines += [f"{key} = {json.dumps(value)}" for key, value in values.items()]
        if isinstance(table, Source) and not table.schema:
            lines.append(f"[{kind}.{name}.columns]")
            lines += [f"{json.dumps(column.name)} = {{ {_inline(column)} }}" for column in table.columns]
    for aggregate in board.aggregates.values():
        lines += [f"[aggregates.{aggregate.name}]", f"source = {json.dumps(aggregate.source)}"]
        lines += [f"by = {json.dumps(aggregate.by)}", f"where = {json.dumps(aggregate.where)}"]
        times = {word: getattr(aggregate, word) for word in ("window", "slide", "keep")}
        lines += [f'{word} = "{milliseconds} ms"' for word, milliseconds in times.items() if milliseconds]
        lines.append(f"[aggregates.{aggregate.name}.measures]")
        lines += [f"{json.dumps(name)} = {json.dumps(text)}" for name, text in aggregate.measures.items()]
    for alert in board.alerts.values():
        lines += [f"[alerts.{alert.name}]", f"table = {json.dumps(alert.table)}", f"when = {json.dumps(alert.when)}"]
    for view in board.views.values():
        lines += [f"[views.{view.name}]", f"sql = {json.dumps(view.sql)}", f"key = {json.dumps(view.key)}"]
    return "\n".join(lines)


def _inline(column: Column) -> str:
    """The column as a source's table of columns has it."""
    parts = {"type": column.type, "unit": column.unit, "from": column.origin}
    if column.path is not None:
        parts["path"] = written_path(column.path)
    return ", ".join(f"{key} = {json.dumps(value)}" for key, value in parts.items() if value)
