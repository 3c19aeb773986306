"""A whole system of real processes in the hands of a test: a broker, a pipeline, two servers, and viewers of both.

Between pipeline and broker, servers and broker, and viewer and server there are proxies. `FAULTS` has what can happen
to all of them; after each, `expect_healed` compares every table of both servers, and what viewers see, with the oracle.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import psutil
from harness import PATIENCE_S, Event, until
from oracle import Table
from ports import closed_port
from process import board_toml
from proxy import Proxy
from swapping import Swapping, wiring

from liveboard.client import Client, SyncSubscription, Unreachable, connect
from liveboard.kafka.broker import Broker

KEY = "the key of the system"
_LISTENERS = ("PIPELINE", "SERVERS")
_WATCHED = ("final_ui", "user_account", "rejects_ui")
_WINDOW = 300


class ProxiedBroker(Broker):
    """A broker with a listener of its own for pipeline and servers, each behind a proxy."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory, closed_port())
        self._ports = {name: closed_port() for name in _LISTENERS}
        self.proxies = {name: Proxy(port) for name, port in self._ports.items()}

    def close(self) -> None:
        """Ends it and the proxies."""
        self.stop()
        for proxy in self.proxies.values():
            proxy.close()

    def _write(self, name: str, text: str) -> None:
        if name == "server.properties":
            found = re.search(r"^listeners=(PLAINTEXT://\S+),(CONTROLLER://\S+)$", text, re.M)
            assert found
            listening = [f"{name}://127.0.0.1:{port}" for name, port in self._ports.items()]
            told = [f"{name}://{proxy.address}" for name, proxy in self.proxies.items()]
            protocols = ",".join(f"{name}:PLAINTEXT" for name in ("PLAINTEXT", "CONTROLLER", *_LISTENERS))
            text += f"\nlisteners={','.join([*found.groups(), *listening])}"
            text += f"\nadvertised.listeners={','.join([found[1], *told])}"
            text += f"\nlistener.security.protocol.map={protocols}\n"
        super()._write(name, text)


class Server:
    """`liveboard serve` as a process."""

    def __init__(self, name: str, bootstrap: str, board_text: str, directory: Path) -> None:
        self.port = closed_port()
        self._log = directory / f"{name}.out"
        self._environment = {
            **os.environ,
            "LIVEBOARD_KAFKA_BOOTSTRAP_SERVERS": bootstrap,
            "LIVEBOARD_STORAGE_DIR": str(directory / name),
            "LIVEBOARD_SERVER_PORT": str(self.port),
            "LIVEBOARD_SERVER_PSK": KEY,
            "LIVEBOARD_BOARD": board_text,
        }
        self.start()

    def start(self) -> None:
        """Starts it; it need not be ready when this returns."""
        with self._log.open("ab") as log:
            self.process = psutil.Popen(
                [sys.executable, "-m", "liveboard", "serve"],
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def is_ready(self) -> bool:
        """What it says of itself."""
        assert self.process.poll() is None, self._log.read_text()[-3000:]
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/readyz", timeout=5):
                return True
        except (urllib.error.URLError, OSError):
            return False

    def kill(self) -> None:
        """kill -9."""
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        """Leaves nothing running."""
        if self.process.is_running():
            self.kill()


class System:
    """Everything that runs, and the words in which faults are told."""

    def __init__(self, directory: Path, stack: ExitStack) -> None:
        self.broker = ProxiedBroker(directory / "kafka")
        stack.callback(self.broker.close)
        self.broker.start()
        links = self.broker.proxies
        self.board = stack.enter_context(
            closing(
                Swapping(
                    self.broker.bootstrap_servers,
                    directory,
                    LIVEBOARD_KAFKA_BOOTSTRAP_SERVERS=links["PIPELINE"].address,
                    LIVEBOARD_CONTROL_RETIRE_AFTER="0 s",
                )
            )
        )
        for number in range(2):
            self.board.fill(number)
        self._bench = stack.enter_context(closing(self.board.bench(wiring(0), "g0")))
        self.board.start()
        self.board.wait_until_live(wiring(0))
        text = board_toml(self.board.board)
        self.servers = [Server(f"server{n}", links["SERVERS"].address, text, directory) for n in (1, 2)]
        for server in self.servers:
            stack.callback(server.close)
        self.viewing = Proxy(self.servers[0].port)
        stack.callback(self.viewing.close)
        self.links = {
            "pipeline and broker": links["PIPELINE"],
            "servers and broker": links["SERVERS"],
            "viewer and server": self.viewing,
        }
        until(lambda: all(server.is_ready() for server in self.servers), "servers that are ready")
        self.clients = [stack.enter_context(_connected(port)) for port in (self.viewing.port, self.servers[1].port)]
        self.viewers = [
            {table: client.subscribe(table, window=(0, _WINDOW)) for table in _WATCHED} for client in self.clients
        ]

    def processes(self) -> dict[str, list[psutil.Process]]:
        """All that run, by what they are."""
        family = self.board.pipeline.processes() if self.board.pipeline.is_running() else []
        return {
            "broker": [psutil.Process(self.broker.pid)] if self.broker.alive else [],
            "pipeline": family[:1],
            "spark": [process for process in family[1:] if "java" in process.name()],
            "server 1": [self.servers[0].process],
            "server 2": [self.servers[1].process],
        }

    def expect_healed(self) -> None:
        """Waits until the first wiring is live, and every table and every viewer has what the oracle says."""
        live = self.board.wait_until_live(wiring(0))
        with closing(self.board.bench(wiring(0), live)) as bench:
            # As they are in the changelogs: sums of doubles depend on the order.
            expected = {name: bench.table(name) for name in bench.expect_oracle()}
        for number, server in enumerate(self.servers):
            until(server.is_ready, "a server that is ready")
            with _connected(server.port) as client:
                for name, table in expected.items():
                    until(partial(_shows, client, name, _rows(table)), f"{name} of server {number + 1} to be right")
                for name in _WATCHED:
                    first = client.table(name).rows()[:_WINDOW]
                    self._expect_viewed(self.viewers[number][name], first, len(expected[name]), name)

    def _expect_viewed(self, viewer: SyncSubscription, rows: list[Any], total: int, name: str) -> None:
        def is_so() -> bool:
            update = viewer.update
            return bool(
                update and update.stale_since is None and update.total == total and list(update.rows) == list(rows)
            )

        until(is_so, lambda: f"a viewer of {name} with {total} rows, found {viewer.update}"[:2000])

    def lag(self) -> float:
        """How long a user takes from Kafka to the viewer of the second server, in seconds."""
        viewer = self.viewers[1]["final_ui"]
        before = viewer.update.total if viewer.update else 0
        began = time.monotonic()
        self._bench.produce([Event("users", b'{"userId":"lag"}', int(time.time() * 1000))])
        while not viewer.update or viewer.update.total == before:
            assert time.monotonic() < began + PATIENCE_S, "waited in vain for a user to be shown"
            time.sleep(0.001)
        return time.monotonic() - began


@contextmanager
def _connected(port: int) -> Iterator[Client]:
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            with connect(f"http://127.0.0.1:{port}", KEY) as client:
                yield client
            return
        except Unreachable:
            assert time.monotonic() < deadline, f"no server at port {port}"
            time.sleep(0.1)


def _shows(client: Client, table: str, expected: list[tuple[Any, ...]]) -> bool:
    return sorted(client.table(table).rows(), key=repr) == expected


def _rows(table: Table) -> list[tuple[Any, ...]]:
    """As a client has them."""
    return sorted((tuple(map(_cell, row)) for row in table.values()), key=repr)


def _cell(value: Any) -> Any:
    is_time = isinstance(value, str) and re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+Z", value)
    return datetime.fromisoformat(value) if is_time else value


@dataclass(frozen=True)
class Fault:
    """Something that happens to a system, and its end."""

    name: str
    begin: Callable[[System], object]
    heal: Callable[[System], object]


def _signalled(who: str, number: signal.Signals) -> Callable[[System], None]:
    def send(system: System) -> None:
        for process in system.processes()[who]:
            process.send_signal(number)

    return send


def _stopped(who: str) -> Fault:
    return Fault(f"{who} is stopped", _signalled(who, signal.SIGSTOP), _signalled(who, signal.SIGCONT))


def _killed(what: str) -> Fault:
    java = "java" if what == "spark" else "python"
    return Fault(
        f"{what} is killed",
        lambda system: system.board.pipeline.kill(java),
        lambda system: system.board.pipeline.start(),
    )


def _server_killed(number: int) -> Fault:
    return Fault(
        f"server {number} is killed",
        lambda system: system.servers[number - 1].kill(),
        lambda system: system.servers[number - 1].start(),
    )


def _broker_killed(system: System) -> None:
    os.kill(system.broker.pid or 0, signal.SIGKILL)
    until(lambda: not system.broker.alive, "the end of the broker")


def _on(link: str) -> list[Fault]:
    def heal(system: System) -> None:
        system.links[link].heal()

    return [
        Fault(f"{link} are cut off", lambda system: system.links[link].cut(), heal),
        Fault(f"{link} are slow", lambda system: system.links[link].slow(0.3), heal),
        Fault(f"{link} do not hear each other", lambda system: system.links[link].half_open(), heal),
    ]


def _confused(system: System) -> None:
    """Control messages twice, broken, old ones again; they end where they began."""
    board = system.board
    for message in (wiring(1), wiring(1), b"{", wiring(0), wiring(1, "inner"), {"usersTopic": 7}, wiring(0), wiring(0)):
        board.ask(message)


def _forgetful(system: System) -> None:
    """The checkpoint of what is live is gone."""
    checkpoint = system.board.pipeline.storage / "pipeline" / str(system.board.status().live)
    subprocess.run(["rm", "-rf", str(checkpoint)], check=False)


def _changelog_deleted(system: System) -> None:
    """Of what is live."""
    system.board.admin.delete([system.board.names.changelog(str(system.board.status().live), "final_ui")])


def _nothing(system: System) -> None:
    pass


STOPS = [_stopped(who) for who in ("broker", "pipeline", "spark", "server 1", "server 2")]
LINKS = [fault for link in ("pipeline and broker", "servers and broker", "viewer and server") for fault in _on(link)]
MESSAGES = [
    Fault("control messages come twice and out of order", _confused, _nothing),
    Fault(
        "a swap there and back", lambda system: system.board.ask(wiring(1)), lambda system: system.board.ask(wiring(0))
    ),
]
KILLS = [
    *[_server_killed(number) for number in (1, 2)],
    _killed("spark"),
    _killed("pipeline"),
    Fault("broker is killed", _broker_killed, lambda system: system.broker.start()),
    Fault("a checkpoint is lost", _forgetful, _nothing),
    Fault("a changelog is deleted", _changelog_deleted, _nothing),
]
FAULTS = [*STOPS, *LINKS, *MESSAGES, *KILLS]


@contextmanager
def running(directory: Path) -> Iterator[System]:
    """A system that leaves nothing behind, however it ends."""
    with ExitStack() as stack:
        yield System(directory, stack)
