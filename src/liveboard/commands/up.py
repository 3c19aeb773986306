"""`liveboard up`: the broker, the pipeline, the server and sample data in one command, kept alive and on display."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from confluent_kafka import KafkaException
from rich.console import Console
from rich.live import Live

from liveboard.commands import access
from liveboard.commands.access import Access
from liveboard.commands.display import Health, Light, Screen, Shot, Tables, status_line
from liveboard.commands.keeper import Child, Keeper
from liveboard.config import Settings
from liveboard.contract import status
from liveboard.contract.errors import LiveboardError
from liveboard.contract.names import Names
from liveboard.contract.tables import table_columns
from liveboard.install import libraries
from liveboard.kafka import address, security
from liveboard.kafka.admin import Admin
from liveboard.kafka.board import KeptStatus, follow
from liveboard.kafka.broker import Broker
from liveboard.sample import shop, users
from liveboard.serving.login import LIFE_S

_FRAME_S = 0.25
_LINES_S = 2.0
_RETRY_S = 2.0
_ANSWER_S = 10.0
_SAMPLE_BAD = 0.01


class Sample(NamedTuple):
    """Sample data: what it is like, and how many events a second."""

    like: str
    rate: float


def run(settings: Settings, config: Path | None, sample: Sample | None, stopping: threading.Event) -> None:
    """Runs everything until `stopping` is set, with sample data if wanted; leaves no process."""
    if sample:
        # Says now what its process would say again and again.
        (shop.check if sample.like == "shop" else users.options_for)(settings.board)
    server, server_port = access.choose(settings)
    console = Console()
    drawing = sys.stdout.isatty() and not console.is_dumb_terminal
    with contextlib.ExitStack() as parts:
        keepers: list[Keeper] = []
        bootstrap = settings.kafka.bootstrap_servers
        if settings.kafka.embedded:
            broker = EmbeddedBroker(settings, stopping)
            print("liveboard: starting the broker", flush=True)
            try:
                broker.start()
            except LiveboardError:
                if stopping.is_set():
                    return
                raise
            keepers.append(parts.enter_context(Keeper(broker, running=True)))
            bootstrap = broker.address
        kafka = security.librdkafka(settings.kafka, bootstrap)
        if settings.kafka.embedded:
            Admin(kafka).create(source.topic for source in settings.board.sources.values())
        feed = parts.enter_context(
            DisplayFeed(settings.names, Tables(settings.names, table_columns(settings.board)), kafka)
        )

        def child(name: str, *options: str, **variables: str) -> Child:
            flags = ("--config", str(config)) if config else ()
            environment = {"LIVEBOARD_KAFKA_BOOTSTRAP_SERVERS": bootstrap, **variables}
            return Child(name, [name, *flags, *options], environment, settings.storage.dir)

        def is_live() -> bool:
            return light_of(feed.kept, pipeline.started_ms) is Light.LIVE

        pipeline = child("pipeline")
        keepers.append(parts.enter_context(Keeper(pipeline)))
        # In the environment, which other users cannot read, unlike a command line.
        made = {} if settings.server.psk else {"LIVEBOARD_SERVER_PSK": server.key}
        serving = child("serve", LIVEBOARD_SERVER_PORT=str(server_port), **made)
        keepers.append(parts.enter_context(Keeper(serving)))
        access.remember(settings, server)
        if sample:
            producer = child("sample", "--like", sample.like, "--rate", str(sample.rate), "--bad", str(_SAMPLE_BAD))
            # With the pipeline live there is no history to build first, and the first row ticks sooner.
            keepers.append(parts.enter_context(Keeper(producer, ready=is_live)))
        parts.enter_context(_caching(settings.storage.dir, is_live))
        overview = Overview(pipeline, keepers, feed)
        _await_answer(server, stopping)
        shown = "the configured key" if settings.server.psk else f"the key {server.key}"
        print(f"liveboard: live tables at {server.url} with {shown}", flush=True)
        about = f"{server.url} with {shown}"
        if not settings.server.psk:
            # Where a key is configured, the terminal may be read by people who do not have it.
            link = access.login_link(server)
            about = f"{link} or {shown}"
            print(f"liveboard: open {link} (once, within {LIFE_S / 60:.0f} minutes)", flush=True)
        print(f"liveboard: Kafka {bootstrap}, storage {settings.storage.dir}, Ctrl-C stops", flush=True)
        if drawing:
            _draw(console, overview, Screen(f"{about} · Kafka {bootstrap}"), stopping)
        else:
            _print(overview, stopping)
        print("liveboard: stopping", flush=True)


class EmbeddedBroker:
    """The broker, which keeps its address when it is started again."""

    name = "broker"

    def __init__(self, settings: Settings, stopping: threading.Event) -> None:
        self._settings = settings
        self._stopping = stopping
        self._broker = Broker(settings.storage.dir / "broker", settings.kafka.port)

    @property
    def address(self) -> str:
        """Where it answers."""
        return self._broker.bootstrap_servers

    @property
    def alive(self) -> bool:
        return self._broker.alive

    def start(self) -> None:
        self._broker.start(self._go_on)
        address.remember(self._settings, self.address)

    def reason(self) -> str:
        try:
            self._broker.check()
        except LiveboardError as error:
            return str(error)
        return "it was stopped"

    def stop(self) -> None:
        self._broker.stop()
        self._broker = Broker(self._broker.directory, int(self.address.rpartition(":")[2]))

    def _go_on(self, _: str) -> None:
        if self._stopping.is_set():
            raise LiveboardError("stopped before the broker was ready")


class DisplayFeed:
    """Pours the changelogs of the live generation into the tables, in a thread of its own."""

    def __init__(self, names: Names, tables: Tables, client_config: Mapping[str, str]) -> None:
        self.tables = tables
        self.kept: KeptStatus | None = None
        self.note = ""
        self._names = names
        self._client_config = client_config
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._pour, name="feed", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stopping.set()
        self._thread.join(_RETRY_S)

    def _pour(self) -> None:
        tables = [shot.name for shot in self.tables.shots()]
        while not self._stopping.is_set():
            try:
                with contextlib.closing(follow(self._client_config, self._names, tables)) as batches:
                    for kept, changes in batches:
                        self.kept = kept
                        self.tables.apply(kept.status.shown if kept else None, changes)
                        self.note = ""
                        if self._stopping.is_set():
                            return
            except (LiveboardError, KafkaException) as error:
                self.note = f"tables: {error}"
                self._stopping.wait(_RETRY_S)


class Overview:
    """What can be shown at any moment: the tables, whether they are live, and what the user should know."""

    def __init__(self, pipeline: Child, keepers: Sequence[Keeper], feed: DisplayFeed) -> None:
        self._pipeline = pipeline
        self._keepers = keepers
        self._feed = feed
        self._was_live = False
        self._stale_since: datetime | None = None

    def look(self) -> tuple[list[Shot], Health, list[str]]:
        """The tables, their health, and notices."""
        said, kept = self._pipeline.said(), self._feed.kept
        # The tables shown here do not depend on the others.
        running = all(keeper.up for keeper in self._keepers if keeper.part.name in ("broker", "pipeline"))
        health = self._health(light_of(kept, self._pipeline.started_ms) if running else Light.STARTING)
        notices = [note for note in [*[keeper.note for keeper in self._keepers], self._feed.note] if note]
        if not notices and kept and kept.timestamp_ms >= self._pipeline.started_ms and kept.status.message:
            notices = [f"pipeline: {kept.status.message}"]
        elif not notices and health.light is not Light.LIVE and said:
            notices = [f"pipeline: {said[-1]}"]
        return self._feed.tables.shots(), health, notices

    def _health(self, light: Light) -> Health:
        if light is Light.LIVE:
            self._was_live, self._stale_since = True, None
        elif self._was_live:
            self._stale_since = self._stale_since or datetime.now()
            return Health(Light.STALE, self._stale_since)
        return Health(light)


def light_of(kept: KeptStatus | None, started_ms: int) -> Light:
    """What the pipeline that was started then says that it is doing; what an earlier one said does not count."""
    if kept is None or kept.timestamp_ms < started_ms:
        return Light.STARTING
    match kept.status.phase:
        case status.Phase.LIVE:
            return Light.LIVE
        case status.Phase.BUILDING | status.Phase.CATCHING_UP:
            return Light.LIVE if kept.status.live else Light.BUILDING
        case _:
            return Light.STARTING


@contextlib.contextmanager
def _caching(directory: Path, is_live: Callable[[], bool]) -> Iterator[None]:
    """Makes the caches that make later starts faster, where there are none: set-up leaves them to the first board."""
    if all(libraries.cache(part).exists() for part in ("spark", "broker")):
        yield
        return
    maker, ending = Child("caches", ["caches", "later"], {}, directory, module="liveboard.install"), threading.Event()

    def make() -> None:
        while not ending.wait(_RETRY_S):
            if is_live():
                return maker.start()

    thread = threading.Thread(target=make, name="caches", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ending.set()
        thread.join()
        maker.stop()


def _await_answer(server: Access, stopping: threading.Event) -> None:
    """Waits for the server, so that its address can be opened as soon as it is shown; not for ever, it may fail."""
    deadline = time.monotonic() + _ANSWER_S
    while not access.answers(server) and time.monotonic() < deadline and not stopping.wait(_FRAME_S):
        pass


def _draw(console: Console, overview: Overview, screen: Screen, stopping: threading.Event) -> None:
    with Live(console=console, screen=True, auto_refresh=False) as live:
        while not stopping.wait(_FRAME_S):
            live.update(screen.draw(*overview.look(), console.width, console.height), refresh=True)
    shots, health, _ = overview.look()
    for shot in shots:
        print(status_line(shot, health))


def _print(overview: Overview, stopping: threading.Event) -> None:
    before: list[str] = []
    printed = time.monotonic()
    while not stopping.wait(_FRAME_S):
        shots, health, notices = overview.look()
        for notice in notices:
            if notice not in before:
                print(f"liveboard: {notice}", flush=True)
        before = notices
        if time.monotonic() - printed >= _LINES_S:
            printed = time.monotonic()
            for shot in shots:
                print(status_line(shot, health), flush=True)
