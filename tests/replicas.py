"""Servers as processes of their own, and the load balancer of `deploy/` before them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import debian
import psutil
from live import KEY, wait
from ports import closed_port

_CONFIGURATION = Path(__file__).parents[1] / "deploy" / "haproxy.cfg"
# Instead of `-m liveboard`, where snapshots are to be made.
EAGER = (str(Path(__file__).with_name("eager.py")),)
_BOARD = '[sources.users]\ntopic = "users"\nschema = "userId string, age bigint"\ntable = "users_ui"'


class Replica:
    """`liveboard serve` on a port that it keeps."""

    def __init__(
        self, bootstrap: str, directory: Path, board: str = _BOARD, program: tuple[str, ...] = ("-m", "liveboard")
    ) -> None:
        self.port = closed_port()
        self.storage = directory / str(self.port)
        self._program = program
        self.url = f"http://127.0.0.1:{self.port}"
        self._output = directory / f"{self.port}.out"
        self._environment = {
            **os.environ,
            "LIVEBOARD_KAFKA_BOOTSTRAP_SERVERS": bootstrap,
            "LIVEBOARD_STORAGE_DIR": str(self.storage),
            "LIVEBOARD_SERVER_PORT": str(self.port),
            "LIVEBOARD_SERVER_PSK": KEY,
            "LIVEBOARD_BOARD": board,
        }

    def start(self) -> None:
        """Returns when it has every table."""
        with self._output.open("ab") as output:
            self._said = output.tell()
            self._process = subprocess.Popen(
                [sys.executable, *self._program, "serve"], env=self._environment, stdout=output, stderr=output
            )
        wait(self.is_ready)

    def said(self) -> str:
        """What it has logged since its start."""
        return self._output.read_bytes()[self._said :].decode()

    def is_ready(self) -> bool:
        """What a load balancer asks."""
        assert self._process.poll() is None, self._output.read_text()
        return answer(f"{self.url}/readyz") is not None

    def metric(self, name: str) -> float:
        """The sum of a metric."""
        lines = (answer(f"{self.url}/metrics") or "").splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.split("{")[0].split(" ")[0] == name)

    @property
    def pid(self) -> int:
        """Of the process that runs now, or ran last."""
        return self._process.pid

    def kill(self) -> None:
        """As the system would without memory."""
        self._process.kill()
        self._process.wait()

    def kill_if(self, condition: Callable[[], object]) -> bool:
        """Stops it where it is, and kills it if the condition holds then; tells whether it did."""
        self._process.send_signal(signal.SIGSTOP)
        wait(lambda: psutil.Process(self.pid).status() == psutil.STATUS_STOPPED)
        if not condition():
            self._process.send_signal(signal.SIGCONT)
            return False
        self.kill()
        return True


def answer(url: str, key: str = "") -> str | None:
    """What is answered with 200, to someone who has the key; None for anything else."""
    asked = urllib.request.Request(url, headers={"Authorization": f"Bearer {key}"} if key else {})
    try:
        with urllib.request.urlopen(asked, timeout=5) as found:
            return str(found.read().decode())
    except (urllib.error.URLError, OSError):
        return None


@contextmanager
def balanced(one: Replica, two: Replica) -> Iterator[str]:
    """The address of HAProxy before two servers."""
    port = closed_port()
    places = {"LISTEN": port, "SERVER_1": one.port, "SERVER_2": two.port}
    environment = {f"LIVEBOARD_{name}": f"127.0.0.1:{number}" for name, number in places.items()}
    program = debian.provide("haproxy", "haproxy", "the tests of several servers")
    running = subprocess.Popen([program, "-db", "-f", str(_CONFIGURATION)], env={**os.environ, **environment})
    try:
        wait(lambda: answer(f"http://127.0.0.1:{port}/healthz"))
        yield f"http://127.0.0.1:{port}"
    finally:
        running.kill()
        running.wait()
