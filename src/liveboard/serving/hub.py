"""All viewers, what they ask for, and what a change of the tables means for them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator

import msgspec

from liveboard import __version__
from liveboard.contract import frames
from liveboard.contract.frames import Code, FrameError
from liveboard.serving.auth import Grant
from liveboard.serving.catalogue import Catalogue, Watcher
from liveboard.serving.limits import Limits
from liveboard.serving.metrics import Counters
from liveboard.serving.rounds import Rounds
from liveboard.serving.subscription import Subscription
from liveboard.serving.table import Applied, Table
from liveboard.serving.viewer import Viewer
from liveboard.serving.viewer_socket import Outlet
from liveboard.serving.views import Views


class Hub(Watcher):
    """Belongs to the event loop; the catalogue tells it what becomes of the tables."""

    def __init__(self, catalogue: Catalogue, views: Views, counters: Counters, limits: Limits) -> None:
        self.viewers: set[Viewer] = set()
        """All that have the key."""
        self._catalogue = catalogue
        self._views = views
        self._counters = counters
        self._limits = limits
        self._rounds = Rounds(self.viewers)

    @property
    def subscriptions(self) -> int:
        """Of all viewers."""
        return sum(len(viewer.subscriptions) for viewer in self.viewers)

    def enter(self, grant: Grant, outlet: Outlet) -> Viewer:
        """A viewer from now on, which is told of the tables that its key shows."""
        viewer = Viewer(grant, self._limits, self._rounds, outlet, self._counters)
        viewer.say(frames.Ready(self._catalogue.infos(grant), grant.role, f"liveboard {__version__}"))
        self.viewers.add(viewer)
        return viewer

    def leave(self, viewer: Viewer) -> None:
        """Ends all that the viewer has."""
        self.viewers.discard(viewer)
        for id in tuple(viewer.subscriptions):
            viewer.drop(id)

    def obey(self, viewer: Viewer, frame: frames.ClientFrame) -> None:
        """Does what a frame asks for; otherwise a FrameError, and all is as it was."""
        match frame:
            case frames.Subscribe():
                self._subscribe(viewer, frame)
            case frames.MoveWindow():
                self._move(viewer, frame)
            case frames.Unsubscribe():
                viewer.drop(frame.id)
            case frames.Auth():
                raise FrameError(Code.BAD_FRAME, "expected one auth frame in a connection, found another")

    async def beat(self) -> None:
        """Lets all viewers know from time to time that the server is there."""
        while True:
            await asyncio.sleep(self._limits.beat_every_s)
            for viewer in self.viewers:
                viewer.beat()

    def applied(self, table: Table, applied: Applied) -> None:
        """Rows have changed."""
        self._views.applied(table, applied)

    def rebound(self) -> None:
        """Names mean other tables than before."""
        for viewer in tuple(self.viewers):
            for subscription in tuple(viewer.subscriptions.values()):
                asked = subscription.asked
                try:
                    table = self._catalogue.find(viewer.grant, asked.table, asked.generation)
                    if table is not subscription.table:
                        subscription.show(asked, table)
                except FrameError as error:
                    self._end(viewer, asked.id, error)

    def dropped(self, table: Table) -> None:
        """A table is gone, and with it what is pinned to it."""
        for viewer in tuple(self.viewers):
            for subscription in tuple(viewer.subscriptions.values()):
                if subscription.table is table:
                    asked = subscription.asked
                    message = f'expected a generation that is kept, found that "{asked.generation}" has been closed'
                    self._end(viewer, asked.id, FrameError(Code.UNKNOWN_TABLE, message))
        self._views.drop(table)

    def _subscribe(self, viewer: Viewer, asked: frames.Subscribe) -> None:
        if asked.id in viewer.subscriptions:
            raise FrameError(Code.BAD_FRAME, f"expected a new id, found {asked.id}, which is in use", asked.id)
        if len(viewer.subscriptions) >= self._limits.subscriptions:
            expected = f"expected up to {self._limits.subscriptions} subscriptions on a connection"
            raise FrameError(Code.TOO_MANY, f"{expected}, found one more", asked.id)
        subscription = Subscription(asked, viewer.owe, self._views, self._limits)
        with _about(asked.id):
            subscription.show(asked, self._catalogue.find(viewer.grant, asked.table, asked.generation))
        viewer.subscriptions[asked.id] = subscription

    def _move(self, viewer: Viewer, frame: frames.MoveWindow) -> None:
        subscription = viewer.subscriptions.get(frame.id)
        if subscription is None or subscription.table is None:
            raise FrameError(Code.BAD_WINDOW, f"expected the id of a subscription, found {frame.id}", frame.id)
        named = {name: value for name, value in msgspec.structs.asdict(frame).items() if value is not msgspec.UNSET}
        with _about(frame.id):
            subscription.show(msgspec.structs.replace(subscription.asked, **named), subscription.table)

    def _end(self, viewer: Viewer, id: int, error: FrameError) -> None:
        viewer.drop(id)
        viewer.say(frames.Error(id, error.code, str(error)))


@contextlib.contextmanager
def _about(id: int) -> Iterator[None]:
    """Says in a FrameError which subscription it is about."""
    try:
        yield
    except FrameError as error:
        raise FrameError(error.code, str(error), id) from None
