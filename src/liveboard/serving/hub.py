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
from liveboard.serving.limits import Limits, check_window
from liveboard.serving.metrics import Counters
from liveboard.serving.rounds import Rounds
from liveboard.serving.sql_views import SqlViews
from liveboard.serving.subscription import Subscription
from liveboard.serving.table import Applied, Table
from liveboard.serving.viewer import Viewer
from liveboard.serving.viewer_socket import Outlet
from liveboard.serving.views import Views


class Hub(Watcher):
    """Belongs to the event loop; the catalogue tells it what becomes of the tables."""

    def __init__(
        self, catalogue: Catalogue, views: Views, counters: Counters, limits: Limits, sql: SqlViews | None = None
    ) -> None:
        self.viewers: set[Viewer] = set()
        """All that have the key."""
        self._catalogue = catalogue
        self._views = views
        self._counters = counters
        self._limits = limits
        self._sql = sql
        self._rounds = Rounds()

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
        if self._sql:
            self._sql.applied(table, applied)

    def rebound(self) -> None:
        """Names mean other tables than before."""
        if self._sql:
            self._sql.rebound()
        for viewer in tuple(self.viewers):
            for subscription in tuple(viewer.subscriptions.values()):
                asked = subscription.asked
                if asked.sql:
                    continue
                try:
                    table = self._catalogue.find(viewer.grant, asked.table, asked.generation)
                    if table is not subscription.table:
                        subscription.show(asked, table)
                except FrameError as error:
                    self.end(viewer, asked.id, error)

    def dropped(self, table: Table) -> None:
        """A table is gone, and with it what is pinned to it."""
        for viewer in tuple(self.viewers):
            for subscription in tuple(viewer.subscriptions.values()):
                if subscription.table is table:
                    asked = subscription.asked
                    message = f'expected a generation that is kept, found that "{asked.generation}" has been closed'
                    self.end(viewer, asked.id, FrameError(Code.UNKNOWN_TABLE, message))
        self._views.drop(table)
        if self._sql:
            self._sql.dropped(table)

    def _subscribe(self, viewer: Viewer, asked: frames.Subscribe) -> None:
        if asked.id in viewer.subscriptions:
            raise FrameError(Code.BAD_FRAME, f"expected a new id, found {asked.id}, which is in use", asked.id)
        if len(viewer.subscriptions) >= self._limits.subscriptions:
            expected = f"expected up to {self._limits.subscriptions} subscriptions on a connection"
            raise FrameError(Code.TOO_MANY, f"{expected}, found one more", asked.id)
        subscription = Subscription(asked, viewer.owe, self._views, self._limits)
        with _about(asked.id):
            if asked.sql:
                return self._ask(viewer, subscription, asked.sql)
            subscription.show(asked, self._catalogue.find(viewer.grant, asked.table, asked.generation))
        viewer.subscriptions[asked.id] = subscription
        return None

    def _ask(self, viewer: Viewer, subscription: Subscription, sql: str) -> None:
        """The same for a statement, whose table comes later."""
        asked = subscription.asked
        if asked.table or asked.generation is not None:
            raise FrameError(Code.BAD_FRAME, "expected either a table or sql, without a generation, found both")
        check_window(asked.offset, asked.size, self._limits)
        if self._sql is None:
            raise FrameError(Code.BAD_SQL, "expected a server that answers SQL, found one that does not")
        viewer.subscriptions[asked.id] = subscription
        asker = _Asker(self, viewer, subscription)
        try:
            statement = self._sql.open(viewer.grant, sql, asker)
        except FrameError:
            del viewer.subscriptions[asked.id]
            raise
        opened = self._sql
        subscription.closed = lambda: opened.close(statement, asker)
        if asked.id not in viewer.subscriptions:
            subscription.closed()

    def _move(self, viewer: Viewer, frame: frames.MoveWindow) -> None:
        subscription = viewer.subscriptions.get(frame.id)
        if subscription is None:
            raise FrameError(Code.BAD_WINDOW, f"expected the id of a subscription, found {frame.id}", frame.id)
        named = {name: value for name, value in msgspec.structs.asdict(frame).items() if value is not msgspec.UNSET}
        asked = msgspec.structs.replace(subscription.asked, **named)
        with _about(frame.id):
            if subscription.table is not None:
                subscription.show(asked, subscription.table)
            else:
                check_window(asked.offset, asked.size, self._limits)
                subscription.asked = asked

    def end(self, viewer: Viewer, id: int, error: FrameError) -> None:
        """Ends a subscription, and says why."""
        viewer.drop(id)
        viewer.say(frames.Error(id, error.code, str(error)))


class _Asker:
    """A viewer that waits for the table of its statement."""

    def __init__(self, hub: Hub, viewer: Viewer, subscription: Subscription) -> None:
        self._hub = hub
        self._viewer = viewer
        self._subscription = subscription

    def answered(self, table: Table) -> None:
        """Shows it."""
        asked = self._subscription.asked
        try:
            self._subscription.show(asked, table)
        except FrameError as error:
            self._hub.end(self._viewer, asked.id, error)

    def refused(self, error: FrameError) -> None:
        """Says why there is none."""
        self._hub.end(self._viewer, self._subscription.asked.id, error)


@contextlib.contextmanager
def _about(id: int) -> Iterator[None]:
    """Says in a FrameError which subscription it is about."""
    try:
        yield
    except FrameError as error:
        raise FrameError(error.code, str(error), id) from None
