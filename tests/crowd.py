"""Many viewers in a process of its own, each with a connection and a window; asked on its input, it says what they see.

Every line that it gets is answered with one: for each viewer the server, the table, where its window begins, the number
of rows in the table, whether it is stale, and the rows as a text.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from typing import Any, NamedTuple

from liveboard.client import Unreachable, connect_async

WINDOW = 20
_STEP = 7
_AT_ONCE = 20


class Seen(NamedTuple):
    """What one viewer sees."""

    server: int
    table: str
    offset: int
    total: int
    is_stale: bool
    rows: str


def told(rows: Any) -> str:
    """Rows as a text that is the same for the same rows."""
    return repr([tuple(row) for row in rows])


class Crowd:
    """The process, in the hands of a test."""

    def __init__(self, ports: list[int], viewers: int, tables: tuple[str, ...], key: str) -> None:
        command = [sys.executable, __file__, json.dumps([ports, viewers, tables, key])]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.look()

    def look(self) -> list[Seen]:
        """What all of them see now."""
        assert self._process.stdin
        assert self._process.stdout
        print(file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        assert line, "the viewers' process has ended"
        return [Seen(*seen) for seen in json.loads(line)]

    def close(self) -> None:
        """Ends it."""
        self._process.kill()
        self._process.wait()


async def _main(ports: list[int], viewers: int, tables: list[str], key: str) -> None:
    async def viewer(number: int) -> Any:
        server, table = number % len(ports), tables[number // len(ports) % len(tables)]
        offset = number // (len(ports) * len(tables)) % 5 * _STEP
        while True:
            try:
                client = await connect_async(f"http://127.0.0.1:{ports[server]}", key)
            except Unreachable:
                await asyncio.sleep(0.1)
            else:
                return client, server, client.subscribe(table, window=(offset, WINDOW)), table, offset

    found: list[Any] = []
    for first in range(0, viewers, _AT_ONCE):
        found += await asyncio.gather(*map(viewer, range(first, min(first + _AT_ONCE, viewers))))
    loop = asyncio.get_running_loop()
    while await loop.run_in_executor(None, sys.stdin.readline):
        seen = []
        for _, server, subscription, table, offset in found:
            update = subscription.update
            if update is None:
                seen.append(Seen(server, table, offset, 0, True, str(subscription.error)))
            else:
                is_stale = update.stale_since is not None
                seen.append(Seen(server, table, offset, update.total, is_stale, told(update.rows)))
        print(json.dumps(seen), flush=True)


if __name__ == "__main__":
    asyncio.run(_main(*json.loads(sys.argv[1])))
