"""Keeps parts of liveboard running: child processes that are started again when they end."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from liveboard.backoff import Backoff
from liveboard.contract.errors import LiveboardError
from liveboard.kafka import guard

_SETTLED_AFTER_S = 5.0
_STOP_TIMEOUT_S = 20.0
_TICK_S = 0.1
_SAID_BYTES = 65_536


class Part(Protocol):
    """Something that runs beside this process and may end on its own."""

    @property
    def name(self) -> str:
        """What the user calls it."""

    @property
    def alive(self) -> bool:
        """Whether it runs."""

    def start(self) -> None:
        """Returns when it runs; a LiveboardError says why it does not."""

    def reason(self) -> str:
        """Why it ended on its own, in one sentence."""

    def stop(self) -> None:
        """Ends what is left of it and of all that it has started."""


class Child:
    """A liveboard command as a child process; what it says goes to the end of a file.

    Only `stop` and the end of this process end it, not Ctrl-C. All of them end its children too.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        environment: Mapping[str, str],
        directory: Path,
        module: str = "liveboard",
    ) -> None:
        self.name = name
        self.started_ms = 0
        """When it was started last, in milliseconds since 1970."""
        self._command = [sys.executable, "-P", "-m", module, *command]
        self._environment = {**os.environ, "PYTHONUNBUFFERED": "1", **environment}
        self._output = directory / f"{name}.out"
        self._output_start = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = -1

    @property
    def alive(self) -> bool:
        process = self._process
        return process is not None and process.poll() is None

    def start(self) -> None:
        pipe, self._owner = os.pipe()
        self.started_ms = time.time_ns() // 1_000_000
        try:
            self._output.parent.mkdir(parents=True, exist_ok=True)
            with self._output.open("ab") as output:
                self._output_start = output.tell()
                guarded = [guard.__file__, str(pipe), str(output.fileno()), *self._command]
                self._process = subprocess.Popen(
                    [sys.executable, "-I", "-S", *guarded],
                    env=self._environment,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    pass_fds=(pipe, output.fileno()),
                    start_new_session=True,
                )
        except OSError as error:
            raise LiveboardError(f"it cannot be started: {error}") from error
        finally:
            os.close(pipe)

    def said(self) -> list[str]:
        """The last lines that it has printed since it was started."""
        try:
            with self._output.open("rb") as output:
                end = output.seek(0, os.SEEK_END)
                output.seek(max(self._output_start, end - _SAID_BYTES))
                text = output.read().decode(errors="replace")
        except OSError:
            return []
        return [
            line.removeprefix("liveboard: ").removeprefix("[orchestrator] ").strip()
            for line in text.splitlines()
            if line.strip()
        ]

    def reason(self) -> str:
        code = self._process.returncode if self._process else 0
        if code is not None and code < 0:
            return f"killed by {signal.Signals(-code).name}"
        return next(reversed(self.said()), f"exit code {code}")

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_STOP_TIMEOUT_S)
            # The group lasts as long as the guard, which waits at our pipe: its number means no other.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None
        if self._owner >= 0:
            os.close(self._owner)
            self._owner = -1


class Keeper:
    """Runs a part until the end of its context, and starts it again, ever less eagerly, whenever it ends.

    It is `running` already, or started for the first time once `ready` says so.
    """

    def __init__(self, part: Part, *, running: bool = False, ready: Callable[[], bool] = lambda: True) -> None:
        self.part = part
        self.note = ""
        """What the user should know about the part now; empty while all is well."""
        self.up = running
        """Whether the part runs and has finished starting."""
        self._ready = ready
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._keep, name=f"{part.name} keeper", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stopping.set()
        self._thread.join()

    def _keep(self) -> None:
        while not self._ready() and not self._stopping.wait(_TICK_S):
            pass
        backoff = Backoff()
        while not self._stopping.is_set():
            why = self._run()
            if self._stopping.is_set():
                return
            pause = backoff.failed()
            times = f" after {backoff.failures} ends in a row" if backoff.failures > 1 else ""
            because = f"{times}: {' '.join(why.split())}"
            self.note = f"{self.part.name} starts again in {pause:.0f} s{because}"
            self._stopping.wait(pause)
            self.note = f"{self.part.name} starts again{because}"

    def _run(self) -> str:
        """Runs the part until it ends or is to end; returns why it ended."""
        try:
            if not self.up:
                self.part.start()
            self.up, started = True, time.monotonic()
            while self.part.alive and not self._stopping.wait(_TICK_S):
                if self.note and time.monotonic() - started > _SETTLED_AFTER_S:
                    self.note = ""
            return "" if self._stopping.is_set() else self.part.reason()
        except LiveboardError as error:
            return str(error)
        finally:
            self.up = False
            self.part.stop()
