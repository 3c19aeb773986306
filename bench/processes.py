"""Functions at work in processes of their own, so that they neither wait for nor disturb each other."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection, wait
from multiprocessing.synchronize import Event
from typing import Any, Generic, TypeVar

from liveboard.contract.errors import LiveboardError

_SPAWN = multiprocessing.get_context("spawn")
_END_S = 20.0
_CHECK_S = 0.2

T = TypeVar("T")


def say(text: str) -> None:
    """A progress line."""
    print(f"{time.strftime('%H:%M:%S')}  {text}", flush=True)


class Helper(Generic[T]):
    """A call that runs in a fresh process from now on; it ends with the process that asked for it."""

    def __init__(self, what: str, function: Callable[..., T], *arguments: object) -> None:
        self._what = what
        self._receiver, sender = _SPAWN.Pipe(duplex=False)
        self._process = _SPAWN.Process(target=_work, args=(sender, function, arguments))
        # Only the processes that the first one starts have helpers of their own, which Python forbids to daemons.
        self._process.daemon = multiprocessing.parent_process() is not None
        self._process.start()
        sender.close()

    def result(self, timeout_s: float, check: Callable[[], None] = lambda: None) -> T:
        """What the call returned; `check` is asked again and again and may raise."""
        deadline = time.monotonic() + timeout_s
        try:
            while not self._receiver.poll(_CHECK_S):
                check()
                if time.monotonic() > deadline:
                    raise LiveboardError(f"gave up after {timeout_s:.0f} s of waiting for {self._what}")
            value, error = self._receiver.recv()
            self._process.join(_END_S)
        except EOFError:
            self._process.join(_END_S)
            raise LiveboardError(f"{self._what}: its process ended with exit code {self._process.exitcode}") from None
        finally:
            self._process.kill()
            self._process.join()
        if error:
            raise LiveboardError(f"{self._what}: {error}")
        result: T = value
        return result

    def await_ready(self, ready: Event, timeout_s: float) -> None:
        """Returns when the signal is set; raises what the call raised, where it ended before."""
        deadline = time.monotonic() + timeout_s
        while not ready.wait(_CHECK_S):
            if self._receiver.poll():
                self.result(_END_S)
            if time.monotonic() > deadline:
                raise LiveboardError(f"gave up after {timeout_s:.0f} s of waiting for {self._what} to be ready")


def signal_between() -> Event:
    """Something that one process can wait for and another one can set."""
    return _SPAWN.Event()


def await_ready(ready: Event, what: str, timeout_s: float = 60.0) -> None:
    """Returns when the signal is set."""
    if not ready.wait(timeout_s):
        raise LiveboardError(f"gave up after {timeout_s:.0f} s of waiting for {what} to be ready")


def await_until(is_so: Callable[[], bool], what: str, timeout_s: float, pause_s: float = 0.02) -> None:
    """Returns as soon as it is so; the question may raise."""
    deadline = time.monotonic() + timeout_s
    while not is_so():
        if time.monotonic() > deadline:
            raise LiveboardError(f"gave up after {timeout_s:.0f} s of waiting for {what}")
        time.sleep(pause_s)


def in_process(what: str, timeout_s: float, function: Callable[..., T], *arguments: object) -> T:
    """Calls the function in a fresh process."""
    return Helper(what, function, *arguments).result(timeout_s)


@contextmanager
def repeating(every_s: float, do: Callable[[int], None]) -> Iterator[None]:
    """Calls the function with 0, 1, 2, … in a thread, with a pause before each, until the end."""
    stopping = threading.Event()

    def repeat() -> None:
        number = 0
        while not stopping.wait(every_s):
            do(number)
            number += 1

    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join()


def _work(sender: Connection, function: Callable[..., Any], arguments: tuple[object, ...]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, whose end is ours
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        outcome = function(*arguments), ""
    except Exception as error:
        outcome = None, f"{type(error).__name__}: {' '.join(str(error).split())[:500]}"
    sender.send(outcome)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(1)
