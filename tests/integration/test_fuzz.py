"""A hundred thousand inputs that nobody should send, to a real server process, while somebody watches a table."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psutil
import pytest
import websockets
from live import KEY, PATIENCE_S, USERS, Board, Client, at, users, wait
from websockets.exceptions import ConnectionClosed

from liveboard.contract import frames
from liveboard.kafka.admin import Admin

pytestmark = pytest.mark.integration

SEED = 20260131
SOCKETS, FRAMES_EACH, BATCH = 18, 5_000, 100
HTTP_CLIENTS, REQUESTS_EACH = 8, 1_250
assert SOCKETS * FRAMES_EACH + HTTP_CLIENTS * REQUESTS_EACH >= 100_000
MAY_GROW_BYTES = 96 * 2**20
EXAMPLES = json.loads(Path(frames.__file__).with_name("frames.json").read_text())
COLUMNS = [column.name for column in USERS]
WORDS = ["", "users_ui", "orchestrator_status", "g1", "asc", "desc", *COLUMNS, "=", "in", "between", "contains"]
VALUES: list[Any] = [
    *WORDS,
    *(
        "' OR 1=1 --",
        "\x00",
        "\x1f",
        "\ud800",
        "ẞİ",
        "\U0010ffff",
        "x" * 5_000,
        "2026-01-31",
        at(1),
        "9" * 30,
        "%",
        "_",
    ),
    *(
        None,
        True,
        False,
        0,
        1,
        -1,
        300,
        10_001,
        2**31,
        2**53,
        2**63,
        -(2**63),
        2**64,
        10**400,
        0.5,
        -0.0,
        1e308,
        5e-324,
    ),
    *([], {}, [[]], [None], {"": None}, [1, 2], ["a", "b", "c"]),
]


class Mutator:
    """Makes of a frame what is almost one; the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)

    def frame(self) -> str | bytes:
        """What a viewer might send."""
        draw = self.draw
        example = draw.choice(EXAMPLES["client"])
        match draw.randrange(10):
            case 0:
                return str(draw.choice(EXAMPLES["bad"])["text"])
            case 1:
                return self.spoilt(self.text(example))
            case 2:
                return self.text(self.value(4))
            case 3:
                return self.spoilt(self.text(example)).encode("utf-8", "replace")
            case 4 | 5:
                return self.text(self.query() | {"op": "subscribe", "id": draw.randrange(20)})
            case 6:
                moved = {name: value for name, value in self.query().items() if name != "table"}
                return self.text(moved | {"op": "window", "id": draw.randrange(20)})
            case _:
                changed = {**example, "id": draw.randrange(20)} if "id" in example else dict(example)
                for _ in range(draw.randint(1, 3)):
                    changed[draw.choice([*changed, "nothing", ""])] = self.value(3)
                return self.text(changed)

    def query(self) -> dict[str, Any]:
        """What might be a query, mostly of the right shape."""
        draw = self.draw
        asked: dict[str, Any] = {"table": "users_ui", "size": draw.choice([1, 5, 300, 10_000])}
        if draw.random() < 0.3:
            asked["offset"] = draw.choice([0, 3, 2**40, -1])
        if draw.random() < 0.3:
            asked["sort"] = [[draw.choice(COLUMNS), draw.choice(["asc", "desc"])] for _ in range(draw.randrange(4))]
        if draw.random() < 0.5:
            operators = ["=", "!=", "<", ">=", "in", "between", "contains", "starts with", "is null", "like"]
            terms = range(draw.randrange(3))
            asked["filter"] = [[draw.choice(COLUMNS), draw.choice(operators), self.value(1)] for _ in terms]
        if draw.random() < 0.2:
            asked["search"] = draw.choice(VALUES)
        return asked

    def path(self) -> tuple[str, str]:
        """A method and what might be a path of the server."""
        draw = self.draw
        table = draw.choice(["users_ui", "users_ui", "control_raw", quote(str(draw.choice(VALUES)), errors="replace")])
        kind = draw.choice(["", "", "/chart", "/export", "/../..", "/%00", "//"])
        parameters = [
            f"{quote(name)}={quote(value if isinstance(value, str) else self.text(value), errors='replace')}"
            for name, value in self.query().items()
            if name != "table" and draw.random() < 0.5
        ]
        extra = [f"{quote(str(draw.choice(WORDS)))}={quote(str(draw.choice(VALUES)), errors='replace')}"]
        if kind == "/chart":
            parameters.append(f"column={draw.choice([*COLUMNS, 'nobody'])}")
        if kind == "/export":
            parameters.append(f"format={draw.choice(['csv', 'json', 'parquet', 'arrow', 'xls'])}")
        asked = "&".join([*parameters, *(extra if draw.random() < 0.3 else [])])
        others = ["/", "/api", "/api/tables", "/ws", "/healthz", "/metrics", "/readyz", "/%2e%2e/etc/passwd", "/x.js"]
        path = draw.choice([*others, *[f"/api/tables/{table}{kind}?{asked}"] * 12])
        return draw.choice(["GET"] * 8 + ["HEAD", "PUT", "OPTIONS", "DELETE"]), path

    def value(self, depth: int) -> Any:
        """Anything that JSON has, nested up to a depth."""
        draw = self.draw
        if depth == 0 or draw.random() < 0.6:
            return draw.choice(VALUES)
        if draw.random() < 0.7:
            return [self.value(depth - 1) for _ in range(draw.randrange(4))]
        return {str(draw.choice(WORDS)): self.value(depth - 1) for _ in range(draw.randrange(4))}

    def text(self, value: Any) -> str:
        """As JSON; characters that are no text are escaped."""
        return json.dumps(value)

    def spoilt(self, text: str) -> str:
        """With a few characters that are others, gone or repeated."""
        letters = list(text)
        for _ in range(self.draw.randint(1, 4)):
            at_ = self.draw.randrange(len(letters) or 1)
            letters[at_ : at_ + self.draw.randrange(3)] = self.draw.choice(
                ["", "{", '"', "\\", "[[[[", "\x00", "ü", "9"]
            )
        return "".join(letters)


class Served:
    """`liveboard serve` as a process of its own."""

    def __init__(self, board: Board, folder: Path) -> None:
        environment = {
            **os.environ,
            "LIVEBOARD_KAFKA_BOOTSTRAP_SERVERS": board.bootstrap,
            "LIVEBOARD_SERVER_PORT": "0",
            "LIVEBOARD_SERVER_PSK": KEY,
            "LIVEBOARD_STORAGE_DIR": str(folder / "storage"),
        }
        self._log = folder / "serve.log"
        with self._log.open("w") as log:
            self.process = psutil.Popen(
                [sys.executable, "-m", "liveboard", "serve"],
                env=environment,
                cwd=folder,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        line = self.process.stdout.readline()
        self.port = int(line.partition(",")[0].rpartition(":")[2])

    @property
    def memory(self) -> int:
        """What it uses."""
        return int(self.process.memory_info().rss)

    def log(self) -> list[str]:
        """What it has said."""
        return self._log.read_text().splitlines()


@contextmanager
def served(board: Board, folder: Path) -> Iterator[Served]:
    """The process, which stops cleanly when it is told to."""
    running = Served(board, folder)
    try:
        yield running
        running.process.send_signal(signal.SIGTERM)
        assert running.process.wait(PATIENCE_S) == 0
    finally:
        if running.process.poll() is None:
            running.process.kill()
            running.process.wait()
        running.process.stdout.close()


class Watcher(threading.Thread):
    """Looks at a table that ticks, and counts the ticks that it has seen, all of them in order."""

    def __init__(self, port: int, board: Board) -> None:
        super().__init__(daemon=True)
        self.seen = 0
        self.failure: BaseException | None = None
        self._port = port
        self._board = board
        self._ending = threading.Event()

    def run(self) -> None:
        try:
            with Client(self._port) as client:
                client.receive_ev("ready")
                client.subscribe(1)
                while not self._ending.is_set():
                    self._board.write(str(self._board.live), users(0, age=self.seen + 1))
                    client.until(lambda: client.rows[1][0][1][1] == self.seen + 1)
                    client.frames.clear()
                    self.seen += 1
        except BaseException as error:
            self.failure = error

    def stop(self) -> None:
        """Ends it."""
        self._ending.set()
        self.join(PATIENCE_S)
        assert self.failure is None, self.failure
        assert not self.is_alive()


async def pester(port: int, seed: int) -> Counter[str]:
    """Sends frames over one connection after the other; gives what was answered."""
    mutator, answers, left = Mutator(seed), Counter[str](), FRAMES_EACH
    while left:
        async with websockets.connect(f"ws://127.0.0.1:{port}/ws", compression=None, max_size=None) as socket:
            await socket.send(json.dumps({"op": "auth", "psk": KEY}))
            try:
                while left:
                    for _ in range(min(BATCH, left)):
                        left -= 1
                        await socket.send(mutator.frame())
                    # What is answered in order, after everything before.
                    await socket.send('{"op":"mark"}')
                    while True:
                        frame = json.loads(await asyncio.wait_for(socket.recv(), PATIENCE_S))
                        answers[frame.get("code", frame["ev"])] += 1
                        if "Invalid value 'mark'" in frame.get("message", ""):
                            break
                    for id in range(20):
                        await socket.send(json.dumps({"op": "unsubscribe", "id": id}))
            except ConnectionClosed as closed:
                answers[f"closed {closed.rcvd.code if closed.rcvd else None}"] += 1
    return answers


async def request(port: int, seed: int, source: str, key: str) -> Counter[str]:
    """Asks over HTTP, many times on a connection; gives which answers came."""
    mutator, answers, left = Mutator(seed), Counter[str](), REQUESTS_EACH
    while left:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(source, 0))
        try:
            while left:
                left -= 1
                method, path = mutator.path()
                broken = mutator.draw.random()
                head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {key}\r\n"
                if broken < 0.02:
                    head = mutator.spoilt(head)
                body = mutator.frame() if broken > 0.9 else b""
                body = body.encode("utf-8", "replace") if isinstance(body, str) else body
                if broken > 0.9:
                    where = mutator.draw.choice(["/api/control", "/api/login", "/api/tables"])
                    head = f"POST {where} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n"
                    method = "POST"
                text = f"{head}Content-Length: {len(body)}\r\n\r\n"
                writer.write(text.encode("latin-1", "replace") + body)
                status, is_open = await asyncio.wait_for(answer(reader, method), PATIENCE_S)
                answers[status] += 1
                if not is_open:
                    break
        except (ConnectionError, asyncio.IncompleteReadError):
            answers["closed"] += 1
        finally:
            writer.close()
    return answers


async def answer(reader: asyncio.StreamReader, method: str) -> tuple[str, bool]:
    """The status of an answer, read to its end, and whether the connection goes on."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    status = head.split()[1]
    if method == "HEAD" or status in ("204", "304"):
        pass
    elif "transfer-encoding: chunked" in head:
        while size := int(await reader.readline(), 16):
            await reader.readexactly(size + 2)
        await reader.readline()
    else:
        length = head.partition("content-length: ")[2].split("\r\n")[0]
        await reader.readexactly(int(length or 0))
    return status, "connection: close" not in head


async def storm(port: int, part: int) -> tuple[Counter[str], Counter[str]]:
    """All at once."""
    sockets = [pester(port, SEED + part * 1_000 + number) for number in range(SOCKETS // 2)]
    clients = [
        request(
            port, SEED + part * 1_000 + 500 + number, *(("127.0.0.2", "wrong") if number == 0 else ("127.0.0.1", KEY))
        )
        for number in range(HTTP_CLIENTS // 2)
    ]
    found = await asyncio.gather(*sockets, *clients)
    return sum(found[: len(sockets)], Counter()), sum(found[len(sockets) :], Counter())


def test_a_hundred_thousand_inputs_break_nothing(kafka: str, tmp_path: Path) -> None:
    board = Board(kafka)
    Admin({"bootstrap.servers": kafka}).create(["liveboard-control"])
    generation = board.build()
    board.write(generation, users(*range(300)))
    board.switch(generation)
    with served(board, tmp_path) as server:
        wait(lambda: any("names bound" in line and generation in line for line in server.log()))
        watcher = Watcher(server.port, board)
        watcher.start()
        # The first half fills whatever is kept for later; from then on nothing grows.
        halves, memory, seen = [], [], []
        for part in range(2):
            halves.append(asyncio.run(storm(server.port, part)))
            memory.append(server.memory)
            seen.append(watcher.seen)
        wait(lambda: watcher.seen > seen[-1])
        watcher.stop()
        sockets = halves[0][0] + halves[1][0]
        requests = halves[0][1] + halves[1][1]
        assert memory[1] - memory[0] < MAY_GROW_BYTES, memory
        assert seen[0] > 0
        assert seen[1] > seen[0]
        # It was not all refused at the door.
        assert {"ready", "snapshot", "bad_frame", "bad_name", "bad_window", "bad_filter"} <= sockets.keys(), sockets
        assert {"200", "400", "401", "404", "405", "429"} <= requests.keys(), requests
        assert [status for status in requests if status.startswith("5") and status != "503"] == [], requests
        assert {code for code in sockets if code.startswith("closed")} <= {"closed 1007", "closed 1013"}, sockets
        with Client(server.port) as client:
            client.receive_ev("ready")
            assert client.subscribe(1, sort=[["age", "asc"]])["total"] == 300
    log = server.log()
    assert [line for line in log if not line.startswith("time=") or "level=error" in line] == []
    assert KEY not in "".join(log)
