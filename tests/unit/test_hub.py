"""The viewers without sockets: what a swap does to their subscriptions, and what one gets that does not keep up."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Sequence
from typing import Any
from unittest.mock import patch

import msgspec
import pytest

from liveboard.contract import frames
from liveboard.contract.board import Wiring
from liveboard.contract.frames import Code, FrameError, Role
from liveboard.contract.schema import TS, Column
from liveboard.contract.status import BoardStatus, GenerationRecord, State
from liveboard.serving.auth import Grant
from liveboard.serving.catalogue import Catalogue
from liveboard.serving.hub import Hub
from liveboard.serving.limits import Limits
from liveboard.serving.metrics import Counters
from liveboard.serving.rounds import Rounds
from liveboard.serving.table import Table
from liveboard.serving.viewer import Viewer
from liveboard.serving.views import Views

NAME, AGE = Column("name", "string"), Column("age", "bigint")
OLD, NEW = (NAME, AGE, TS), (NAME, TS)
ADMIN = Grant("admin", Role.ADMIN)
PATIENCE_S = 60.0


def row(number: int, name: str, columns: Sequence[Column] = OLD) -> bytes:
    age = [number] if AGE in columns else []
    return json.dumps([name, *age, f"2026-01-31T09:30:{number:02d}.000000Z"], separators=(",", ":")).encode()


class Screen:
    """What a viewer has been sent; while it does not read, its connection takes nothing."""

    def __init__(self) -> None:
        self.frames: list[Any] = []
        self.reads = asyncio.Event()
        self.reads.set()

    @property
    def is_free(self) -> bool:
        return self.reads.is_set()

    def write(self, text: str) -> None:
        self.frames.append(frames.decode_server(text))

    async def send(self, text: str) -> None:
        await self.reads.wait()
        self.write(text)

    async def until(self, count: int) -> None:
        """Waits for so many frames: those of a sorted or filtered window take their time."""
        async with asyncio.timeout(PATIENCE_S):
            while len(self.frames) < count:
                await asyncio.sleep(0.001)

    async def taken(self) -> list[Any]:
        """The frames since the last time, once those that are due have come."""
        for _ in range(5):
            await asyncio.sleep(0)
        taken, self.frames = self.frames, []
        return taken


class HubStage:
    """A board whose generations the test makes, and its hub."""

    def __init__(self, limits: Limits) -> None:
        self.counters = Counters()
        self.catalogue = Catalogue()
        self.views = Views()
        self.hub = self.catalogue.watcher = Hub(self.catalogue, self.views, self.counters, limits)
        self._live: str | None = None
        self._generations: dict[str, GenerationRecord] = {}

    def load(self, generation: str, *names: str, columns: Sequence[Column] = OLD) -> None:
        """A generation whose table people has these rows, not live yet."""
        self._generations[generation] = GenerationRecord(
            state=State.BUILDING, wiring=Wiring({}, {}), tables={"people": tuple(columns)}
        )
        self._announce()
        rows = {f"0-{number}".encode(): row(number, name, columns) for number, name in enumerate(names)}
        self.catalogue.loaded(Table("people", generation, columns, rows))

    def switch(self, live: str, *kept: str) -> None:
        """Names mean another generation; all but those that are kept are closed."""
        self._live = live
        self._generations = {
            name: msgspec.structs.replace(self._generations[name], state=State.LIVE if name == live else State.RETIRING)
            for name in (*kept, live)
        }
        self._announce()

    def _announce(self) -> None:
        self.catalogue.status_changed(BoardStatus(sources=(), live=self._live, generations=dict(self._generations)))

    def change(self, number: int, name: str) -> None:
        self.catalogue.changed("g1", "people", [(f"0-{number}".encode(), row(number, name))])

    @contextlib.asynccontextmanager
    async def viewer(self) -> AsyncIterator[tuple[Viewer, Screen]]:
        screen = Screen()
        viewer = self.hub.enter(ADMIN, screen)
        sender = asyncio.create_task(viewer.send_all(screen.send))
        [ready] = await screen.taken()
        assert isinstance(ready, frames.Ready)
        try:
            yield viewer, screen
        finally:
            self.hub.leave(viewer)
            sender.cancel()


@contextlib.asynccontextmanager
async def staged(**limits: int) -> AsyncIterator[HubStage]:
    stage = HubStage(Limits(**limits))
    stage.load("g1", "ada", "bob")
    stage.switch("g1")
    try:
        yield stage
    finally:
        await stage.views.stop()


def asked(id: int, **options: Any) -> frames.Subscribe:
    return frames.Subscribe(id=id, table="people", **options)


def names(frame: Any) -> list[Any]:
    return [row[0] for row in frame.rows]


def test_b15_a_swap_moves_what_follows_the_name_and_leaves_what_is_pinned() -> None:
    async def play() -> None:
        async with staged() as stage, stage.viewer() as (viewer, screen):
            stage.hub.obey(viewer, asked(1))
            stage.hub.obey(viewer, asked(2, generation="g1"))
            assert [names(frame) for frame in await screen.taken()] == [["ada", "bob"]] * 2
            stage.load("g2", "cyd")
            assert await screen.taken() == []
            stage.switch("g2", "g1")
            rebound, snapshot = await screen.taken()
            assert rebound == frames.Rebound(1, "g2")
            assert (snapshot.id, snapshot.version, snapshot.generation, names(snapshot)) == (1, 2, "g2", ["cyd"])
            stage.change(0, "Ada")
            [delta] = await screen.taken()
            assert (delta.id, delta.version) == (2, 2)
            assert stage.views.windows == 2

    asyncio.run(play())


def test_b16_what_is_pinned_ends_with_its_generation() -> None:
    async def play() -> None:
        async with staged() as stage, stage.viewer() as (viewer, screen):
            stage.hub.obey(viewer, asked(1))
            stage.hub.obey(viewer, asked(2, generation="g1"))
            await screen.taken()
            stage.load("g2", "cyd")
            stage.switch("g2")
            found = await screen.taken()
            [error] = [frame for frame in found if isinstance(frame, frames.Error)]
            assert (error.id, error.code) == (2, Code.UNKNOWN_TABLE)
            assert '"g1" has been closed' in error.message
            assert [names(frame) for frame in found if isinstance(frame, frames.Snapshot)] == [["cyd"]]
            assert (list(viewer.subscriptions), stage.views.windows) == ([1], 1)

    asyncio.run(play())


def test_b25_a_swap_to_other_columns_ends_what_asks_for_one_that_is_gone_and_nothing_else() -> None:
    async def play() -> None:
        async with staged() as stage, stage.viewer() as (viewer, screen):
            stage.hub.obey(viewer, asked(1))
            stage.hub.obey(viewer, asked(2, filter=(("age", ">", 0),)))
            await screen.until(2)
            await screen.taken()
            stage.load("g2", "cyd", columns=NEW)
            stage.switch("g2")
            found = await screen.taken()
            [error] = [frame for frame in found if isinstance(frame, frames.Error)]
            assert (error.id, error.code) == (2, Code.BAD_FILTER)
            [snapshot] = [frame for frame in found if isinstance(frame, frames.Snapshot)]
            assert [column.name for column in snapshot.columns] == ["name", "ts"]
            assert list(viewer.subscriptions) == [1]

    asyncio.run(play())


def test_after_a_swap_a_sorted_window_is_shown_as_it_was_until_the_new_one_has_its_rows() -> None:
    async def play() -> None:
        async with staged() as stage, stage.viewer() as (viewer, screen):
            stage.hub.obey(viewer, asked(1, sort=(("name", "desc"),)))
            await screen.until(1)
            [snapshot] = await screen.taken()
            assert names(snapshot) == ["bob", "ada"]
            stage.load("g2", "cyd", "dan")
            stage.switch("g2", "g1")
            await screen.until(2)
            rebound, snapshot = await screen.taken()
            assert rebound == frames.Rebound(1, "g2")
            assert (snapshot.version, names(snapshot)) == (2, ["dan", "cyd"])
            assert stage.views.windows == 1

    asyncio.run(play())


def test_a_viewer_that_does_not_read_gets_all_changes_in_one_frame_and_slows_nobody() -> None:
    async def play() -> None:
        async with staged() as stage, stage.viewer() as (slow, asleep), stage.viewer() as (quick, screen):
            for viewer in (slow, quick):
                stage.hub.obey(viewer, asked(1))
            await screen.taken()
            await asleep.taken()
            asleep.reads.clear()
            for change in range(20):
                stage.change(0, f"ada{change}")
                assert [frame.version for frame in await screen.taken()] == [2 + change]
            assert await asleep.taken() == []
            asleep.reads.set()
            first, *others = await asleep.taken()
            # One may have been on its way already when it stopped reading.
            last = others[-1] if others else first
            assert len(others) <= 1
            assert [frame.version for frame in (first, *others)] == [2, 3][: 1 + len(others)]
            assert last.rows[0][2][0] == "ada19"
            assert b'liveboard_conflations_total{table="people"} 1.0' in stage.counters.text()

    asyncio.run(play())


def test_one_that_is_too_far_behind_gets_a_snapshot() -> None:
    async def play() -> None:
        async with staged() as stage, stage.viewer() as (viewer, screen):
            stage.hub.obey(viewer, asked(1))
            await screen.taken()
            screen.reads.clear()
            for change in range(1_000):
                stage.change(0, f"ada{change}")
                await asyncio.sleep(0)
            screen.reads.set()
            *_, last = await screen.taken()
            assert isinstance(last, frames.Snapshot)
            assert names(last) == ["ada999", "bob"]

    asyncio.run(play())


def test_answers_are_counted_and_a_beat_waits_only_once() -> None:
    async def play() -> None:
        async with staged(waiting=3) as stage, stage.viewer() as (viewer, screen):
            screen.reads.clear()
            for _ in range(50):
                viewer.beat()
                await asyncio.sleep(0)
            screen.reads.set()
            assert await screen.taken() == [frames.Beat()] * 2
            screen.reads.clear()
            said = 0
            while not viewer.is_flooded:
                viewer.say(frames.Beat())
                said += 1
                await asyncio.sleep(0)
            # One is on its way.
            assert said == 5

    asyncio.run(play())


def test_what_cannot_be_done_changes_nothing() -> None:
    async def play() -> None:
        async with staged(subscriptions=2) as stage, stage.viewer() as (viewer, screen):

            def refusal(frame: frames.ClientFrame) -> tuple[Code, int | None]:
                with pytest.raises(FrameError) as caught:
                    stage.hub.obey(viewer, frame)
                return caught.value.code, caught.value.id

            stage.hub.obey(viewer, asked(1, size=1))
            assert refusal(asked(1)) == (Code.BAD_FRAME, 1)
            assert refusal(frames.Subscribe(id=2, table="nothing")) == (Code.UNKNOWN_TABLE, 2)
            assert refusal(asked(2, size=0)) == (Code.BAD_WINDOW, 2)
            assert refusal(frames.MoveWindow(id=7, size=3)) == (Code.BAD_WINDOW, 7)
            assert refusal(frames.MoveWindow(id=1, filter=(("no", "=", 1),))) == (Code.BAD_FILTER, 1)
            assert refusal(frames.Auth("again")) == (Code.BAD_FRAME, None)
            stage.hub.obey(viewer, asked(3))
            assert refusal(asked(4)) == (Code.TOO_MANY, 4)
            stage.hub.obey(viewer, frames.Unsubscribe(3))
            stage.hub.obey(viewer, frames.Unsubscribe(3))
            assert [(frame.id, names(frame)) for frame in await screen.taken()] == [(1, ["ada"])]
            stage.hub.obey(viewer, frames.MoveWindow(id=1, offset=1))
            assert [(frame.version, names(frame)) for frame in await screen.taken()] == [(2, ["bob"])]
            assert (stage.hub.subscriptions, stage.views.windows) == (1, 1)

    asyncio.run(play())


def test_many_frames_are_sent_in_rounds_and_each_once() -> None:
    class Sends:
        def __init__(self) -> None:
            self.times = 0

        def send_owed(self) -> None:
            self.times += 1

    async def play() -> None:
        one, other = Sends(), Sends()
        rounds = Rounds()
        for _ in range(3):
            rounds.call(one)
        rounds.call(other)
        assert (one.times, other.times) == (0, 0)
        await asyncio.sleep(0)
        assert (one.times, other.times) == (1, 1)
        # Two frames are few, however many viewers there are.
        rounds.call(one)
        await asyncio.sleep(0)
        assert (one.times, other.times) == (2, 1)
        # A frame that takes days.
        with patch("liveboard.serving.rounds.FRAMES_PER_S", 1e-6):
            rounds.call(other)
            await asyncio.sleep(0)
        rounds.call(one)
        await asyncio.sleep(0)
        assert (one.times, other.times) == (2, 2)

    asyncio.run(play())
