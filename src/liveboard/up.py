"""`liveboard up`: the broker, the pipeline, the server and sample data in one command, kept alive and on display."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from confluent_kafka import KafkaException
from rich.console import Console
from rich.live import Live

from liveboard import access
from liveboard.access import Access
from liveboard.config import Settings
from liveboard.contract import status
from liveboard.contract.tables import table_columns
from liveboard.display import Health, Phase, Screen, Shot, Tables, status_line
from liveboard.errors import LiveboardError
from liveboard.kafka import address, sample, security
from liveboard.kafka.admin import Admin
from liveboard.kafka.board import Kept, follow
from liveboard.kafka.broker import Broker
from liveboard.keeper import Child, Keeper
from liveboard.serving.login import LIFE_S

_FRAME_S = 0.25
_LINES_S = 2.0
_RETRY_S = 2.0
_ANSWER_S = 10.0
_SAMPLE_BAD = 0.01


def run(settings: Settings, config: Path | None, rate: float | None, stopping: threading.Event) -> None:
    """Runs everything until `stopping` is set, with sample data if there is a rate; leaves no process."""
    if rate is not None:
        sample.options_for(settings.board)  # says now what its process would say again and again
    server, server_port = access.choose(settings.server)
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
        feed = parts.enter_context(Feed(Tables(table_columns(settings.board)), kafka))

        def child(name: str, *options: str, **variables: str) -> Child:
            flags = ("--config", str(config)) if config else ()
            environment = {"LIVEBOARD_KAFKA_BOOTSTRAP_SERVERS": bootstrap, **variables}
            return Child(name, [name, *flags, *options], environment, settings.storage.dir)

        pipeline = child("pipeline")
        keepers.append(parts.enter_context(Keeper(pipeline)))
        # In the environment, which other users cannot read, unlike a command line.
        made = {} if settings.server.psk else {"LIVEBOARD_SERVER_PSK": server.key}
        serving = child("serve", LIVEBOARD_SERVER_PORT=str(server_port), **made)
        keepers.append(parts.enter_context(Keeper(serving)))
        access.remember(settings, server)
        if rate is not None:
            producer = child("sample", "--rate", str(rate), "--bad", str(_SAMPLE_BAD))
            # With the pipeline live there is no history to build first, and the first row ticks sooner.
            live = Keeper(producer, ready=lambda: phase_of(feed.kept, pipeline.started_ms) is Phase.LIVE)
            keepers.append(parts.enter_context(live))
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


class Feed:
    """Pours the changelogs of the live generation into the tables, in a thread of its own."""

    def __init__(self, tables: Tables, client_config: Mapping[str, str]) -> None:
        self.tables = tables
        self.kept: Kept | None = None
        self.note = ""
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
        names = [shot.name for shot in self.tables.shots()]
        while not self._stopping.is_set():
            try:
                with contextlib.closing(follow(self._client_config, names)) as batches:
                    for kept, changes in batches:
                        self.kept = kept
                        self.tables.apply(kept.status.live if kept else None, changes)
                        self.note = ""
                        if self._stopping.is_set():
                            return
            except (LiveboardError, KafkaException) as error:
                self.note = f"tables: {error}"
                self._stopping.wait(_RETRY_S)


class Overview:
    """What can be shown at any moment: the tables, whether they are live, and what the user should know."""

    def __init__(self, pipeline: Child, keepers: Sequence[Keeper], feed: Feed) -> None:
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
        health = self._health(phase_of(kept, self._pipeline.started_ms) if running else Phase.STARTING)
        notices = [note for note in [*[keeper.note for keeper in self._keepers], self._feed.note] if note]
        if not notices and kept and kept.timestamp_ms >= self._pipeline.started_ms and kept.status.message:
            notices = [f"pipeline: {kept.status.message}"]
        elif not notices and health.phase is not Phase.LIVE and said:
            notices = [f"pipeline: {said[-1]}"]
        return self._feed.tables.shots(), health, notices

    def _health(self, phase: Phase) -> Health:
        if phase is Phase.LIVE:
            self._was_live, self._stale_since = True, None
        elif self._was_live:
            self._stale_since = self._stale_since or datetime.now()
            return Health(Phase.STALE, self._stale_since)
        return Health(phase)


def phase_of(kept: Kept | None, started_ms: int) -> Phase:
    """What the pipeline that was started then says that it is doing; what an earlier one said does not count."""
    if kept is None or kept.timestamp_ms < started_ms:
        return Phase.STARTING
    match kept.status.phase:
        case status.Phase.LIVE:
            return Phase.LIVE
        case status.Phase.BUILDING:
            return Phase.LIVE if kept.status.live else Phase.BUILDING
        case _:
            return Phase.STARTING


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
