"""The server's side of its SQL process: starts it, asks it, and ends it when it does not listen."""

from __future__ import annotations

import contextlib
import itertools
import logging
import subprocess
import sys
import threading
from collections.abc import Iterable
from typing import cast

import msgspec
import psutil

from liveboard.contract.frames import Code, FrameError
from liveboard.sql import messages
from liveboard.sql.lateness import is_late
from liveboard.sql.messages import Asked, Prepare, Prepared, Refused, Run, SqlAnswer, StatementLimits, Told

# Of the processor: so long a statement that was interrupted may go on, and the process start and take rows in.
_GRACE_S = 2.0
_TAKING_IN_S = 120.0

_log = logging.getLogger(__name__)


class ProcessDied(FrameError):
    """The process has ended by itself or by somebody else: what it was asked may not be the reason."""


class SqlProcess:
    """One process at a time, asked from one thread at a time; every method takes its time."""

    def __init__(self, limits: StatementLimits) -> None:
        self.number = 0
        """Counts the processes: what an earlier one knew, this one does not."""
        self._limits = limits
        self._process: subprocess.Popen[bytes] | None = None
        self._was_late = False

    def start(self) -> None:
        """Makes sure that there is a process."""
        if self._process is not None and self._process.poll() is None:
            return
        self.stop()
        self.number += 1
        self._process = subprocess.Popen(
            [sys.executable, "-m", "liveboard.sql.worker", msgspec.json.encode(self._limits).decode()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # Ctrl-C is not for it. In a session of its own its niceness would not count beside the server.
            process_group=0,
        )

    def ask(self, sent: Iterable[Asked], asked: Prepare | Run) -> Prepared | SqlAnswer:
        """Sends all of it and waits for the answer; a FrameError if there is none."""
        process = self._process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        self._was_late = False
        try:
            for message in itertools.chain(sent, [asked]):
                messages.write(process.stdin, message)
            process.stdin.flush()
            self._told(process, _TAKING_IN_S)
            told = self._told(process, self._limits.seconds + _GRACE_S)
        except (OSError, EOFError):
            has_died = self._process is process and not self._was_late
            if self._process is process:
                _log.warning("SQL process ended", extra={"sql": asked.sql})
            self.stop()
            raise (ProcessDied if has_died else FrameError)(
                Code.OVER_LIMIT,
                f"expected a statement that is answered within {self._limits.seconds:g} s "
                f"(server.limits.sql_seconds) and {self._limits.memory_mb:,} MB, found one that had to be ended",
            ) from None
        except BaseException:
            self.stop()
            raise
        if isinstance(told, Refused):
            raise FrameError(told.code, told.message)
        return cast(Prepared | SqlAnswer, told)

    def stop(self) -> None:
        """Ends the process; harmless when there is none."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                with contextlib.suppress(OSError):
                    if pipe is not None:
                        pipe.close()

    def _told(self, process: subprocess.Popen[bytes], within_s: float) -> Told:
        assert process.stdout is not None
        done = threading.Event()

        def end_it_when_late() -> None:
            with contextlib.suppress(psutil.NoSuchProcess):
                working = psutil.Process(process.pid)
                if is_late(done, within_s, lambda: sum(working.cpu_times()[:2])):
                    self._was_late = True
                    process.kill()

        watching = threading.Thread(target=end_it_when_late, daemon=True)
        watching.start()
        try:
            body = messages.read(process.stdout)
        finally:
            done.set()
            watching.join()
        if body is None:
            raise EOFError
        return messages.told_decoder.decode(body)
