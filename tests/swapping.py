"""A board under an orchestrator: ask for wirings, see what becomes of them, compare everything with the oracle."""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import boards
import orjson
from boards import FIRST_MS
from confluent_kafka import Producer
from harness import PATIENCE_S, Bench, Event, Topics, emptied, until
from process import Pipeline

from liveboard.contract.board import Aggregate, Board, Wiring
from liveboard.contract.changelog import decode_row
from liveboard.contract.names import Names
from liveboard.contract.status import CONTROL_COLUMNS, BoardStatus, State, decode_status
from liveboard.kafka.admin import Admin

CONTROL_TOPIC = Names().control
BOARD = boards.default_board()
BY_EMAIL = Aggregate(
    name="by_email",
    source="users",
    by=("email",),
    where="age > 0 AND NOT name IN ('a', 'null')",
    measures={"people": "count(*)", "years": "sum(age)", "youngest": "min(age)", "last": "max(userId)"},
)


def wiring(number: int, join: str = "left", other_join: str = "asof") -> Wiring:
    """The default board on the topics users<number> and accounts<number>; 0 is the configured one."""
    suffix = str(number or "")
    topics = {source: f"{source}{suffix}" for source in ("users", "accounts")}
    return Wiring(topics, {"final_ui": join, "user_account": other_join})


def _by_key(source: str) -> Board:
    """The default board with a table by key, and an aggregate over it."""
    board = boards.by_key(BOARD, source)
    return replace(board, aggregates={**board.aggregates, "by_email": BY_EMAIL})


class Swapping:
    """A broker with topics for a few wirings, and a pipeline."""

    def __init__(
        self, bootstrap: str, directory: Path, name: str = BOARD.name, by_key: str = "", **environment: str
    ) -> None:
        self.bootstrap = bootstrap
        self.board = replace(_by_key(by_key) if by_key else BOARD, name=name)
        self.names = Names(name)
        self.admin = Admin({"bootstrap.servers": bootstrap})
        self.topics = Topics(bootstrap)
        self._history: list[BoardStatus] = []
        self._producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0, "log_level": 0})
        self._directory = directory
        self._environment = environment

    def start(self, *options: str) -> None:
        """Starts the pipeline for the first time."""
        self.pipeline = self._started(self._directory, options)

    def replace(self, directory: Path, **environment: str) -> None:
        """Another pipeline stands by, with a directory and an environment of its own; then the one at work is killed.

        The checkpoints have to be where both find them.
        """
        standby = self._started(directory, ("--standby",), **environment)
        try:
            standby.wait_for("standing by: ")
            self.pipeline.kill("")
        finally:
            self.pipeline.close()
            self.pipeline = standby

    def _started(self, directory: Path, options: tuple[str, ...], **environment: str) -> Pipeline:
        return Pipeline(self.bootstrap, self.board, directory, options, **{**self._environment, **environment})

    def close(self) -> None:
        """Ends the connections, and leaves no pipeline running."""
        self.topics.close()
        if hasattr(self, "pipeline"):
            self.pipeline.close()

    def fill(self, number: int, events: int = 100, keys: int = 0) -> None:
        """Creates the topics of a wiring if need be and gives them more events, of so many keys if it is said."""
        bench = self.bench(wiring(number), "g0")
        self.admin.create((source.topic for source in bench.board.sources.values()), partitions=2)
        random = Random(f"{number} {events} {time.time_ns()}")
        # Few records per key, however many there are: their cost grows with the records of the key.
        keys = keys or max(200, events // 4)
        bench.produce(event(random, number, keys, self.board) for _ in range(events))
        bench.close()

    def ask(self, document: Any) -> str:
        """Sends a control message: a wiring, bytes, or something that becomes JSON; returns its place."""
        if isinstance(document, Wiring):
            join = document.joins["final_ui"]
            topics = {f"{source}Topic": topic for source, topic in document.topics.items()}
            document = {**topics, "joinType": join}
        value = document if isinstance(document, bytes | None) else json.dumps(document).encode()
        places: list[str] = []
        self._producer.produce(
            self.names.control, value, on_delivery=lambda _, sent: places.append(f"{sent.partition()}-{sent.offset()}")
        )
        assert self._producer.flush(PATIENCE_S) == 0
        return places[0]

    def history(self) -> list[BoardStatus]:
        """Every document that was ever put on record."""
        if not self._history and self.names.status not in self.admin.partitions():
            return []
        messages = self.topics.messages(self.names.status)
        self._history += [decode_status(message.value()) for message in messages[len(self._history) :]]
        return self._history

    def status(self) -> BoardStatus:
        """The newest document."""
        return self.history()[-1]

    def states(self) -> dict[str, str]:
        """Every generation on record."""
        return {name: str(record.state) for name, record in self.status().generations.items()}

    def verdicts(self) -> dict[str, tuple[str, str | None]]:
        """What became of every control message."""
        rows = {
            message.key().decode(): decode_row(message.value(), CONTROL_COLUMNS)
            for message in self.topics.messages(self.names.verdicts)
        }
        assert all(key == f"{row[0]}-{row[1]}" for key, row in rows.items())
        return {key: (str(row[3]), None if row[4] is None else str(row[4])) for key, row in rows.items()}

    def wait_for(self, condition: Callable[[BoardStatus], object]) -> BoardStatus:
        """Waits until a document that fulfils the condition is the newest."""
        found: list[BoardStatus] = []

        def look() -> bool:
            found[:] = self.history()[-1:]
            return bool(found and condition(found[0]))

        until(look, lambda: f"a status, found {found}; the pipeline said {self.pipeline.said()}")
        return found[0]

    def wait_until_live(self, expected: Wiring) -> str:
        """Waits until the wiring is live and nothing is being done; returns its generation."""

        def settled(status: BoardStatus) -> bool:
            live = status.generations.get(status.live or "")
            return bool(live and live.wiring == expected and not status.request and status.phase == "live")

        return str(self.wait_for(settled).live)

    def block(self, generation: str) -> str:
        """Has the build of a generation fail; returns the topic that is in its way.

        Kafka takes no topic whose name differs from another's in nothing but dots and underscores.
        """
        obstacle = self.names.changelog(generation, "final_ui").replace(".", "_")
        self.admin.create([obstacle])
        return obstacle

    def bench(self, of: Wiring, generation: str, patience_s: float = PATIENCE_S) -> Bench:
        """Access to the topics of a wiring and the tables of a generation."""
        return Bench(self.bootstrap, self.board.wired(of), generation, patience_s=patience_s)

    def expect_oracle(self, generation: str) -> None:
        """Waits until every table of the generation is what the oracle says."""
        with closing(self.bench(self.status().generations[generation].wiring, generation)) as bench:
            bench.expect_oracle()

    def expect_complete_since_the_switch(self) -> None:
        """Every generation that has become live had all rows up to the offsets that its switch named."""
        for status in self.history():
            if status.live and status.generations[status.live].state is State.LIVE:
                complete_at = status.generations[status.live].complete_at
                assert complete_at.keys() == status.generations[status.live].tables.keys()

    def expect_nothing_left_behind(self) -> None:
        """The topics and directories that exist are those of the generations on record."""
        status = self.status()
        names = self.names
        changelogs = {names.changelog(name, t) for name, record in status.generations.items() for t in record.tables}
        changelogs |= {names.repairs(name) for name in status.generations}
        found = {topic for topic in self.admin.partitions() if names.owns(topic)}
        alerts = {names.alerts, names.raised} if self.board.alerts else set()
        assert found == changelogs | alerts | {names.status, names.verdicts, names.owner}
        expected = set(status.generations)
        until(lambda: self._directories() == expected, lambda: f"{expected}, found {self._directories()}")

    def _directories(self) -> set[str]:
        return {path.name for path in self.pipeline.checkpoints.iterdir() if path.is_dir()} - {"tmp"}

    def expect_last_applied_only_changed_by_swaps(self) -> None:
        """B17, over every document that was ever put on record."""
        before: tuple[str | None, Wiring | None] = (None, None)
        for status in self.history():
            live = status.generations.get(status.live or "")
            now = (status.last_applied, live.wiring if live else None)
            assert (now[0] == before[0]) == (now[1] == before[1]), (before, now)
            before = now

    @contextmanager
    def load(self, number: int, rate: int, keys: int = 5_000, seconds: float = math.inf) -> Iterator[Load]:
        """So many events per second for the topics of a wiring; after so many seconds it is eased."""
        stopping = threading.Event()
        random = Random(number)
        load = Load(rate, seconds)

        def run() -> None:
            with closing(self.bench(wiring(number), "g0")) as bench:
                while not stopping.wait(0.02):
                    due = load.due
                    bench.produce(event(random, number, keys, self.board) for _ in range(due - load.produced))
                    load.produced = due

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield load
        finally:
            stopping.set()
            thread.join()


class Load:
    """Even events: each round produces all that are due by then."""

    def __init__(self, rate: int, seconds: float) -> None:
        self.produced = 0
        """How many are in Kafka."""
        self._rate = rate
        self._began = time.monotonic()
        self._seconds = seconds

    @property
    def due(self) -> int:
        """How many there should be by now."""
        elapsed = time.monotonic() - self._began
        full = min(elapsed, self._seconds)
        return int((full + (elapsed - full) / 20) * self._rate)

    def ease(self, after_s: float) -> None:
        """So many seconds from now it becomes a twentieth: who is too busy for the load would never come to its end."""
        self._seconds = time.monotonic() - self._began + after_s


def event(random: Random, number: int, keys: int, board: Board, first_ms: int = FIRST_MS) -> Event:
    """A user or an account whose texts tell of which wiring it is; from a table by key some are removed."""
    source = random.choice(["users", "accounts"])
    if board.sources[source].by_key and random.random() < 0.3:
        key = f"u{random.randrange(keys)}".encode()
        return Event(source, None, first_ms + random.randrange(5_000), random.randrange(2), key)
    texts = {"name": f"of {number}", "email": f"{random.randrange(9)}", "accountType": f"of {number}"}
    value = {"userId": f"u{random.randrange(keys)}", **texts, "age": random.randrange(99), "balance": random.random()}
    document = b"broken" if random.random() < 0.01 else orjson.dumps(value)
    return Event(source, document, first_ms + random.randrange(5_000), random.randrange(2))


@contextmanager
def swapping(bootstrap: str, directory: Path, by_key: str = "", **environment: str) -> Iterator[Swapping]:
    """A broker with nothing but the configured topics and those of wirings 1 and 2; the pipeline is not started yet."""
    with emptied(bootstrap), closing(Swapping(bootstrap, directory, by_key=by_key, **environment)) as board:
        for number in range(3):
            board.fill(number)
        yield board


assert BOARD.wiring == wiring(0)
