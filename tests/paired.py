"""A board with everything twice, in the hands of a test or a measure: an owner and a standby, two servers behind a load
balancer, under load.

What can happen to it is told by name; it is healed when `expect_followed` returns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from itertools import count
from pathlib import Path

import orjson
from boards import FIRST_MS
from harness import Event, until
from live import KEY
from oracle import Row
from process import board_toml
from replicas import Replica, answer, balanced
from swapping import Load, Swapping, wiring

import liveboard
from liveboard.client import Client, SyncSubscription
from liveboard.contract.frames import MAX_SIZE
from liveboard.pipeline.joins import KINDS

# So many that a key has few records: what is tested is what happens to the parts, not long keys.
_KEYS = 50_000
_HISTORY = 6_000
# Of each topic.
_PARTITIONS = 2


class Paired:
    """All of it at work, on topics that have a history; the parts end with their stack."""

    def __init__(self, bootstrap: str, directory: Path, parts: ExitStack, environment: Mapping[str, str]) -> None:
        """`environment` is that of the pipelines, and says where both find the checkpoints."""
        self.pipelines = [directory / name for name in ("first", "second")]
        for place in self.pipelines:
            place.mkdir()
        self.owner, self.standby = (
            parts.enter_context(closing(Swapping(bootstrap, place, **environment))) for place in self.pipelines
        )
        # Enough for a build.
        self.owner.fill(0, _HISTORY)
        self.owner.start()
        self.live = self.owner.wait_until_live(wiring(0))
        self.standby.start("--standby")
        self.standby.pipeline.wait_for("standing by: ")
        board = board_toml(self.owner.board)
        self.servers = [Replica(bootstrap, directory, board) for _ in range(2)]
        for server in self.servers:
            server.start()
            parts.callback(server.kill)
        address = parts.enter_context(balanced(*self.servers))
        self._bench = parts.enter_context(closing(self.owner.bench(wiring(0), self.live)))
        self._numbers = count()
        self._viewers = [_viewer(address, parts) for _ in self.servers]
        until(
            lambda: {server.metric("liveboard_viewers") for server in self.servers} == {1.0}, "a viewer of each server"
        )

    @contextmanager
    def load(self, rate: int) -> Iterator[Load]:
        """So many events a second, as soon as viewers see what came before."""
        self.expect_followed()
        with self.owner.load(0, rate, _KEYS) as load:
            yield load

    def expect_followed(self) -> None:
        """Waits until every viewer sees what is produced now in each partition, where tasks of their own read it.

        Those are records that cannot be read, to be told apart.
        """
        text = f"probe {next(self._numbers)}"
        places = [(source, partition) for source in self._bench.board.sources for partition in range(_PARTITIONS)]
        self._bench.produce(Event(source, text.encode(), FIRST_MS, partition) for source, partition in places)
        for viewer in self._viewers:
            until(
                partial(_sees, viewer, text, len(places)),
                lambda: f"{text}; the owner said {self.owner.pipeline.said()[-3000:]}",
            )

    def ask_for_a_repair(self) -> None:
        """More users of a key than a join remembers, then an account that all of them get."""
        asking = orjson.dumps({"userId": "the same", "balance": 1.5})
        remembered = KINDS[self._bench.board.joins["final_ui"].how].usual_history
        self._bench.produce(Event("users", asking, FIRST_MS + n) for n in range(remembered + 10))
        # Of the same partition: they have been read when this has.
        self.expect_followed()
        self._bench.produce([Event("accounts", asking, FIRST_MS)])
        until(lambda: any(s.generations[self.live].repairs for s in self.owner.history() if s.live), "a repair")

    def lose_the_driver(self) -> None:
        """kill -9 of the owner; the standby is to be the next one."""
        self.owner.pipeline.kill("python")
        self.owner = self.standby

    def expect_taken_over(self) -> None:
        """Waits until the board's document says that the standby has the board."""
        storage = str(self.owner.pipeline.storage)
        self.owner.wait_for(lambda status: status.owner and storage in status.owner.name)

    def expect_live(self) -> None:
        """Waits until the stream of the one that has taken over runs."""
        self.owner.pipeline.wait_for(f"{self.live} is live")

    def lose_a_server(self) -> None:
        """kill -9 of the first one."""
        self.servers[0].kill()

    def expect_exact(self) -> None:
        """Waits until each server has what the oracle says, in every table. For the time after the load."""
        expected = self._bench.expected()
        sizes = {name: len(table) for name, table in expected.items()}
        for server in self.servers:
            with liveboard.connect(server.url, KEY) as client:
                until(partial(_has, client, sizes), f"{sizes}")
        # The oracle knows sums of doubles up to their rounding, and how reasons begin: the changelogs have the rest.
        vague = {name: expected[name] for name in ("rejects_ui", *self._bench.board.aggregates)}
        self._bench.expect(vague)
        expected |= {name: self._bench.table(name) for name in vague}
        for server in self.servers:
            for name, table in expected.items():
                until(partial(_shows, server, name, Counter(table.values())), f"{name} of {server.url} to be right")


def _viewer(address: str, parts: ExitStack) -> SyncSubscription:
    client = parts.enter_context(liveboard.connect(address, KEY))
    return client.subscribe("rejects_ui", window=(0, MAX_SIZE))


def _sees(viewer: SyncSubscription, text: str, times: int) -> bool:
    update = viewer.update
    return bool(update and update.stale_since is None and sum(text in row for row in update.rows) == times)


def _has(client: Client, sizes: Mapping[str, int]) -> bool:
    found = {table.name: table.rows for table in client.tables()}
    return all(found.get(name) == size for name, size in sizes.items())


def _shows(server: Replica, table: str, rows: Counter[Row]) -> bool:
    """Whether the server's table has these rows; their order is a matter of other tests."""
    exported = answer(f"{server.url}/api/tables/{table}/export?format=json", KEY)
    return bool(exported) and Counter(tuple(row.values()) for row in orjson.loads(exported or "")) == rows
