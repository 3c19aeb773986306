"""A whole system of real processes in the hands of a test: a broker, a pipeline, two servers, and viewers of both.

Between pipeline and broker, servers and broker, and viewer and server there are proxies, and storage is on disks of
their own. `nemesis.py` has what can happen to all of them; after that, `expect_healed` compares every table of both
servers, what viewers see, alerts and a view in SQL with the oracle.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from datetime import datetime
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import orjson
import psutil
from confluent_kafka import KafkaException
from crowd import WINDOW, Crowd, told
from harness import PATIENCE_S, QUICK_SPARK, Bench, Patience, Topics, difference, until
from loading import Load, probed_user
from machine import Clock, Disk
from oracle import Table
from ports import closed_port
from process import board_toml, spark_conf
from proxy import Proxy
from swapping import BOARD, Swapping, wiring

from liveboard.client import Client, SyncSubscription, Unreachable, connect
from liveboard.contract.board import Alert, View
from liveboard.kafka.broker import Broker

KEY = "the key of the system"
_LISTENERS = ("PIPELINE", "SERVERS")
_WATCHED = ("final_ui", "user_account", "rejects_ui")
_WINDOW = 300
_LOW = 0.1
_VIEW = "by_mail"
_SQL = "SELECT email, count(*) AS people, max(age) AS oldest FROM users_ui WHERE email IS NOT NULL GROUP BY email"
_BOARD = replace(
    BOARD,
    alerts={"low": Alert(name="low", table="final_ui", when=(("balance", "<", _LOW),))},
    views={_VIEW: View(name=_VIEW, sql=_SQL)},
)
# A Spark that starts quickly does not follow more.
_QUICK_RATE = 100
# Comparing everything takes longer the more there is: then all moves on to other topics.
_MOST_RECORDS = 6_000


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

    def __init__(
        self, name: str, bootstrap: str, board_text: str, directory: Path, storage: Path, clock: Clock
    ) -> None:
        self.port = closed_port()
        self._log = directory / f"{name}.out"
        self._environment = {
            **os.environ,
            "LIVEBOARD_KAFKA_BOOTSTRAP_SERVERS": bootstrap,
            "LIVEBOARD_STORAGE_DIR": str(storage),
            "LIVEBOARD_SERVER_PORT": str(self.port),
            "LIVEBOARD_SERVER_PSK": KEY,
            "LIVEBOARD_BOARD": board_text,
            **clock.environment,
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

    def __init__(self, directory: Path, stack: ExitStack, rate: int, viewers: int, seed: int, broker_disk: str) -> None:
        self.chance = Random(f"faults {seed}")
        self.clocks = {name: Clock(directory / f"{name}.clock") for name in ("pipeline", "server 1", "server 2")}
        self.disks = {name: Disk(directory / name) for name in ("broker", "pipeline", "server 1", "server 2")}
        for name, disk in self.disks.items():
            disk.mount(broker_disk if name == "broker" else "512m")
            stack.callback(disk.unmount)
        self.broker = ProxiedBroker(self.disks["broker"].place / "kafka")
        stack.callback(self.broker.close)
        self.broker.start()
        links = self.broker.proxies
        self.board = stack.enter_context(
            closing(
                Swapping(
                    self.broker.bootstrap_servers,
                    directory,
                    LIVEBOARD_KAFKA_BOOTSTRAP_SERVERS=links["PIPELINE"].address,
                    LIVEBOARD_STORAGE_DIR=str(self.disks["pipeline"].place / "storage"),
                    LIVEBOARD_STORAGE_CHECKPOINTS=str(self.disks["pipeline"].place / "checkpoints"),
                    LIVEBOARD_CONTROL_RETIRE_AFTER="0 s",
                    LIVEBOARD_SPARK_CONF=spark_conf(QUICK_SPARK if rate <= _QUICK_RATE else {}),
                    **self.clocks["pipeline"].environment,
                )
            )
        )
        self.board.board = _BOARD
        self._directory = directory
        self._pipelines = count(2)
        self.number = 0
        for number in range(2):
            self._fill(number)
        self._bench: Bench | None = None
        self._alerts = stack.enter_context(closing(Topics(self.board.bootstrap)))
        self.board.start()
        self.board.wait_until_live(self.here)
        text = board_toml(self.board.board)
        self.servers = [
            Server(name, links["SERVERS"].address, text, directory, self.disks[name].place, self.clocks[name])
            for name in ("server 1", "server 2")
        ]
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
        ports = [self.viewing.port, self.servers[1].port]
        self._viewing = [stack.enter_context(_connected(port)) for port in ports]
        self._looking = [stack.enter_context(_connected(server.port)) for server in self.servers]
        self.viewers = [
            {table: client.subscribe(table, window=(0, _WINDOW)) for table in (*_WATCHED, _VIEW)}
            for client in self._viewing
        ]
        self.load = stack.enter_context(closing(Load(self.board.bootstrap, self.board.board, rate, seed)))
        self._looking[1].subscribe("final_ui", self.load.look, window=(0, _WINDOW))
        # Of every table of both servers, through both clients.
        least = 2 * len(ports) * len(_WATCHED)
        self.crowd = stack.enter_context(closing(Crowd(ports, max(viewers, least), _WATCHED, KEY)))

    @property
    def here(self) -> Any:
        """The wiring that is live when nothing is being done to it."""
        return wiring(self.number)

    @property
    def there(self) -> Any:
        """The one that is next, and can be swapped to."""
        return wiring(self.number + 1)

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

    def replace_the_pipeline(self) -> None:
        """A standby is started, and takes over from the one at work, which is killed."""
        name = f"pipeline {next(self._pipelines)}"
        log = self._directory / name
        log.mkdir()
        self.board.replace(log, LIVEBOARD_STORAGE_DIR=str(self.disks["pipeline"].place / name))

    def expect_healed(self) -> None:
        """Waits until the wiring is live, and every table and every viewer has what the oracle says."""
        expected = self._expected()
        shown = [self._served(number, expected) for number in range(len(self.servers))]
        for number, tables in enumerate(shown):
            for name in _WATCHED:
                self._expect_viewed(self.viewers[number][name], tables[name][:_WINDOW], len(tables[name]), name)
        self._expect_view(expected["users_ui"])
        self._expect_crowd(shown)
        self._expect_alerts(expected["final_ui"])

    def move_on(self) -> None:
        """Swaps to the next topics, as soon as comparing what is in these takes long, and deletes these."""
        assert self._bench
        if sum(len(self._bench.topics.messages(topic)) for topic in self.here.topics.values()) < _MOST_RECORDS:
            return
        self._fill(self.number + 2)
        self.board.ask(self.there)
        self.board.wait_until_live(self.there)
        self.board.wait_for(lambda status: len(status.generations) == 1)
        self.board.admin.delete(self.here.topics.values())
        self.number += 1
        self.load.number = self.number

    def _fill(self, number: int) -> None:
        with closing(self.board.bench(wiring(number), "g0")) as bench:
            self.board.admin.create(wiring(number).topics.values(), partitions=2)
            bench.produce([probed_user()])
        self.board.fill(number)

    def _expected(self) -> dict[str, Table]:
        """What is in the changelogs, once that is what the oracle says: sums of doubles depend on the order."""
        patience = Patience()
        while True:
            live = self.board.wait_until_live(self.here)
            if self._bench is None or self._bench.generation != live:
                if self._bench:
                    self._bench.close()
                self._bench = self.board.bench(self.here, live, patience_s=10)
            wrong = ""
            try:
                expected = self._bench.expected()
                found = {name: self._bench.table(name) for name in expected}
                wrong = "\n".join(filter(None, (difference(name, found[name], expected[name]) for name in expected)))
            except (AssertionError, KafkaException) as error:
                # Topics of a generation that was just given up.
                wrong, self._bench = str(error), None
            if not wrong:
                return found
            assert not patience.is_over, f"{live}: {wrong}"
            time.sleep(0.1)

    def _served(self, number: int, expected: dict[str, Table]) -> dict[str, list[Any]]:
        """The rows of all tables as a server has them, once they are what is expected."""
        server, shown = self.servers[number], dict[str, list[Any]]()
        until(server.is_ready, "a server that is ready")

        def is_shown(name: str, rows: list[Any]) -> bool:
            shown[name] = list(self._looking[number].table(name).rows())
            return sorted(shown[name], key=repr) == rows

        for name, table in expected.items():
            rows = _rows(table)
            until(
                lambda name=name, rows=rows: is_shown(name, rows),  # type: ignore[misc]
                lambda name=name, rows=rows: (  # type: ignore[misc]
                    f"{name} of server {number + 1}: {_apart(shown[name], rows)}"
                ),
            )
        return shown

    def _expect_viewed(self, viewer: SyncSubscription, rows: list[Any], total: int, name: str) -> None:
        def is_so() -> bool:
            update = viewer.update
            return bool(
                update and update.stale_since is None and update.total == total and list(update.rows) == list(rows)
            )

        until(is_so, lambda: f"a viewer of {name} with {total} rows, found {viewer.update}"[:2000])

    def _expect_view(self, users: Table) -> None:
        counts = Counter(row[2] for row in users.values() if row[2] is not None)
        oldest = {mail: max((row[3] for row in users.values() if row[2] == mail), default=None) for mail in counts}
        expected = sorted((mail, people, oldest[mail]) for mail, people in counts.items())
        for viewers in self.viewers:
            viewer = viewers[_VIEW]

            def is_so(viewer: SyncSubscription = viewer) -> bool:
                update = viewer.update
                rows = sorted(tuple(row)[:3] for row in update.rows) if update else []
                return bool(update and update.stale_since is None and rows == expected)

            until(is_so, lambda viewer=viewer: f"a view with {expected}, found {viewer.update}"[:2000])  # type: ignore[misc]

    def _expect_crowd(self, shown: list[dict[str, list[Any]]]) -> None:
        def wrong() -> list[Any]:
            return [
                seen
                for seen in self.crowd.look()
                for rows in [shown[seen.server][seen.table]]
                if seen.is_stale
                or seen.total != len(rows)
                or seen.rows != told(rows[seen.offset : seen.offset + WINDOW])
            ]

        until(lambda: not wrong(), lambda: f"all viewers to see what is there, found {wrong()[:3]}"[:2000])

    def _expect_alerts(self, final: Table) -> None:
        """Every row of the join below the limit has an alert, and each was raised and cleared in turn."""
        low = {key for key, row in final.items() if row[5] is not None and row[5] < _LOW}

        def raised() -> set[str]:
            states: dict[str, list[str]] = {}
            for message in self._alerts.messages(self.board.names.alerts):
                if message.value():
                    record = orjson.loads(message.value())
                    states.setdefault(record["key"], []).append(record["state"])
            for key, told_of in states.items():
                once = [("raised", "cleared")[number % 2] for number in range(len(told_of))]
                assert told_of == once, f"alerts of {key} were told as {told_of}"
            return {key for key, told_of in states.items() if told_of[-1] == "raised"}

        until(lambda: raised() == low, lambda: f"alerts, {_apart(sorted(raised()), sorted(low))}")
        for client in self._looking:
            rows = client.table("alerts_ui")
            until(
                lambda rows=rows: {row[2] for row in rows.rows()} == low,  # type: ignore[misc]
                "the alerts of a server",
            )


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


def _rows(table: Table) -> list[tuple[Any, ...]]:
    """As a client has them."""
    return sorted((tuple(map(_cell, row)) for row in table.values()), key=repr)


def _apart(found: list[Any], expected: list[Any]) -> str:
    """In what they differ, in words."""
    there, wanted = Counter(map(repr, found)), Counter(map(repr, expected))
    return f"found {list(there - wanted)[:3]}, expected {list(wanted - there)[:3]}"


def _cell(value: Any) -> Any:
    is_time = isinstance(value, str) and re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+Z", value)
    return datetime.fromisoformat(value) if is_time else value


@contextmanager
def running(
    directory: Path, rate: int = 50, viewers: int = 0, seed: int = 1, broker_disk: str = "1g"
) -> Iterator[System]:
    """A system that leaves nothing behind, however it ends."""
    with ExitStack() as stack:
        yield System(directory, stack, rate, viewers, seed, broker_disk)
