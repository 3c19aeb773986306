"""The two systems, each as its processes on this machine, with the same board over the same topics."""

from __future__ import annotations

import json
import math
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import orjson
import psutil
import pyarrow.compute
from peer.events import Content
from peer.viewers import Viewers
from processes import await_until
from stage import PATIENCE_S, Stage

from liveboard import connect
from liveboard.commands.swap import send
from liveboard.contract.control import control_message
from liveboard.contract.errors import LiveboardError
from liveboard.contract.names import Names
from liveboard.kafka.board import StatusReader

_HERE = Path(__file__).parent
_VENV = _HERE / ".venv"
KEY = "bench"
BY_TYPE = "by_type"
_STOP_S = 60.0
_LOOK_S = 0.01


_COUNT = """
import json as _json, pathlib as _pathlib
from deephaven import agg as _agg, pandas as _pandas
_counts = [_agg.count_("rows"), _agg.count_where("matched", "!isNull({column})"), _agg.sum_("balance")]
_found = _pandas.to_pandas(final_ui.agg_by(_counts))
_values = [float(_found[name][0]) for name in ("rows", "matched", "balance")]
_pathlib.Path("{file}").write_text(_json.dumps(_values))
"""


@dataclass(frozen=True)
class Wiring:
    """What the board reads; the first join is final_ui, a second one user_account. The default board's, if not told.

    A third one, "by_type", is no join: the totals of the accounts by type.
    """

    users: str
    accounts: str
    joins: tuple[str, ...] = ("left", "asof")

    @property
    def topics(self) -> dict[str, str]:
        """Source to topic."""
        return {"users": self.users, "accounts": self.accounts}


class System(ABC):
    """One system at work on a wiring: inside `with`, its processes run."""

    name: str
    viewer: str
    """The module that views it."""
    viewer_settings: tuple[str, ...]

    def __init__(self, stage: Stage, wiring: Wiring) -> None:
        self.stage = stage
        self.directory = Path(tempfile.mkdtemp(prefix=f"{self.viewer}-", dir=stage.directory))
        self.wiring = wiring
        self.port = _free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.started_ns = 0
        self._started: list[subprocess.Popen[bytes]] = []

    @abstractmethod
    def start(self) -> None:
        """Starts the processes and returns at once."""

    @abstractmethod
    def swap(self, wiring: Wiring, viewers: Viewers) -> None:
        """Asks for another wiring under the same names and does not wait for its rows."""

    @abstractmethod
    def expect(self, content: Content, viewers: Viewers) -> None:
        """Raises unless final_ui is exactly that."""

    def await_following(self, wiring: Wiring) -> None:
        """Returns when what comes to the wiring's topics is shown as it comes: as soon as its rows are."""
        return None

    def __enter__(self) -> Self:
        self.started_ns = time.monotonic_ns()
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self._started:
            process.terminate()
        for process in self._started:
            try:
                process.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.clean()
        shutil.rmtree(self.directory, ignore_errors=True)

    def clean(self) -> None:
        """Removes what the system leaves in Kafka."""
        return None

    def check(self) -> None:
        """Raises when a process has ended, with the end of what it said."""
        for process in self._started:
            if process.poll() is not None:
                said = (self.directory / "log").read_text(errors="replace")[-2_000:]
                raise LiveboardError(f"a process of {self.name} ended with exit code {process.returncode}: {said}")

    def kill(self) -> None:
        """kill -9 of all its processes; they are gone when this returns, and it can be started again."""
        family = self.processes()
        for process in family:
            # What watches over the others takes some of them with it.
            with suppress(psutil.NoSuchProcess):
                process.kill()
        for started in self._started:
            started.wait()
        psutil.wait_procs(family, _STOP_S)
        self._started = []

    def processes(self) -> list[psutil.Process]:
        """All its processes."""
        roots = [psutil.Process(process.pid) for process in self._started]
        return [each for root in roots for each in (root, *root.children(recursive=True))]

    @contextmanager
    def viewers(self) -> Iterator[Viewers]:
        """A process for viewers, which are not connected yet."""
        with Viewers(self.viewer, self.viewer_settings, self.directory / "viewers.log") as viewers:
            yield viewers

    def _run(self, command: list[str], environment: dict[str, str]) -> None:
        with (self.directory / "log").open("ab") as output:
            self._started.append(
                subprocess.Popen(
                    command,
                    env={**os.environ, **environment},
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    cwd=self.directory,
                )
            )


class Liveboard(System):
    """The pipeline and the server, with their default settings."""

    name = "liveboard"
    viewer = "liveboard"
    viewer_settings = (KEY,)
    commands: tuple[str, ...] = ("pipeline", "serve")
    _SOURCES = """
[board.sources.users]
topic = "{users}"
schema = "userId string, name string, email string, age bigint"
table = "users_ui"

[board.sources.accounts]
topic = "{accounts}"
schema = "userId string, accountType string, balance double"
table = "accounts_ui"
"""
    _TOTALS = """
[board.aggregates.by_type]
source = "accounts"
by = ["accountType"]

[board.aggregates.by_type.measures]
accounts = "count(*)"
total = "sum(balance)"
largest = "max(balance)"
newest = "max(ts)"
"""

    def start(self) -> None:
        """All commands start at the same time."""
        config = self.directory / "liveboard.toml"
        config.write_text(self._config())
        for command in self.commands:
            self._run([sys.executable, "-m", "liveboard", command, "--config", str(config)], {})

    def swap(self, wiring: Wiring, viewers: Viewers) -> None:
        """No viewer has to do anything."""
        self.ask_for(wiring)

    def ask_for(self, wiring: Wiring) -> None:
        """Sends a control message, as the page does."""
        send(self.stage.client_config, Names(), orjson.dumps(control_message(wiring.topics, {})))

    def expect(self, content: Content, viewers: Viewers) -> None:
        """Over the Python client."""
        with connect(self.url, KEY) as client:
            table = client.table("final_ui").to_arrow()
        matched = table.column(content.matched_column)
        balance = pyarrow.compute.sum(table.column("balance")).as_py()
        _compare(self.name, content, table.num_rows, len(matched) - matched.null_count, balance)

    def await_following(self, wiring: Wiring) -> None:
        """A little later than its rows are shown."""

        def is_live() -> bool:
            self.check()
            kept = reader.look(_LOOK_S)
            live = kept.status.generations.get(kept.status.live or "") if kept else None
            return live is not None and live.wiring.topics == wiring.topics

        with StatusReader(self.stage.client_config, Names()) as reader:
            await_until(is_live, f"{wiring.topics} to be live", PATIENCE_S, pause_s=0)

    def clean(self) -> None:
        """The status, the changelogs and the control messages."""
        admin = self.stage.admin
        admin.delete(topic for topic in admin.partitions() if topic.startswith("liveboard"))

    def _config(self) -> str:
        joins = ""
        for name, how in zip(("final_ui", "user_account"), self.wiring.joins, strict=False):
            left, right = ("accounts", "users") if how == "asof" else ("users", "accounts")
            joins += f'\n[board.joins.{name}]\nleft = "{left}"\nright = "{right}"\non = "userId"\nhow = "{how}"\n'
        totals = self._TOTALS if BY_TYPE in self.wiring.joins else ""
        return (
            f'[kafka]\nbootstrap_servers = "{self.stage.bootstrap}"\n'
            f'[server]\nport = {self.port}\npsk = "{KEY}"\n'
            f'[storage]\ndir = "{self.directory / "storage"}"\n'
            # What a swap replaces goes at once, as on the other side.
            '[control]\nretire_after = "0 s"\n' + self._SOURCES.format(**self.wiring.topics) + joins + totals
        )


class UpLiveboard(Liveboard):
    """All of it by one command, as a new user starts it."""

    commands = ("up",)


class Deephaven(System):
    """The embedded server with nothing but its defaults, and viewers that name no interval."""

    name = "Deephaven, showcase"
    viewer = "deephaven"
    viewer_settings: tuple[str, ...] = ()
    jvm_args: tuple[str, ...] = ()

    def start(self) -> None:
        """One process; Java is inside it."""
        wiring = self.wiring
        jvm_args = ("-DAuthHandlers=io.deephaven.auth.AnonymousAuthenticationHandler", *self.jvm_args)
        folders = {f"DEEPHAVEN_{kind}_DIR": str(self.directory / kind) for kind in ("CACHE", "CONFIG", "DATA")}
        arguments = [
            str(self.port),
            self.stage.bootstrap,
            wiring.users,
            wiring.accounts,
            ",".join(wiring.joins),
            *jvm_args,
        ]
        self._run([str(_VENV / "bin/python"), str(_HERE / "serve.py"), *arguments], folders)

    def swap(self, wiring: Wiring, viewers: Viewers) -> None:
        """The same names get new tables; the old ones go on until nobody has them."""
        joins = ",".join(wiring.joins)
        viewers.order("run", code=f'globals().update(board("{wiring.users}", "{wiring.accounts}", "{joins}"))')

    def expect(self, content: Content, viewers: Viewers) -> None:
        """By a program in the server, since that is quicker than any client."""
        answer = self.directory / "content.json"
        viewers.order("run", 60.0, code=_COUNT.format(column=content.matched_column, file=str(answer)))
        _compare(self.name, content, *json.loads(answer.read_text()))

    @contextmanager
    def viewers(self) -> Iterator[Viewers]:
        """The API's module is taken from the server's files beforehand, so that no viewer waits for its download."""
        module = self.directory / "dh-core.mjs"
        javascript_api(module)
        with Viewers(self.viewer, [str(module), *self.viewer_settings], self.directory / "viewers.log") as viewers:
            yield viewers


class TunedDeephaven(Deephaven):
    """As fast as it goes: a cycle of 10 ms, no server-side limit above that, and viewers that ask for 10 ms."""

    name = "Deephaven, tuned"
    viewer_settings = ("10",)
    jvm_args = ("-DPeriodicUpdateGraph.targetCycleDurationMillis=10", "-Dbarrage.minUpdateInterval=10")


def _compare(name: str, content: Content, rows: float, matched: float, balance: float) -> None:
    is_right = (rows, matched) == (content.rows, content.matched) and math.isclose(balance, content.balance)
    if not is_right:
        raise LiveboardError(f"{name}: expected {content}, found {rows} rows, {matched} matched, {balance} in all")


def javascript_api(module: Path) -> None:
    """Writes the API's module, as the server would give it."""
    jar = next(_VENV.glob("lib/python*/site-packages/deephaven_server/jars/deephaven-web-*.jar"))
    with zipfile.ZipFile(jar) as archive:
        module.write_bytes(archive.read("META-INF/resources/jsapi/dh-core.js"))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
