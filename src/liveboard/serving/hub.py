"""The viewers and what each of them is shown.

Per subscription there is nothing but the step of the window that its viewer was sent last. A viewer that does not keep
up is therefore not queued for: when its connection takes the next frame, that frame leads from what it has to the
newest content. Nobody waits for it: what a connection does not take at once is left to the viewer's own task.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass

import msgspec
from starlette.websockets import WebSocket, WebSocketDisconnect

from liveboard import __version__
from liveboard.config import LimitSettings
from liveboard.contract import frames
from liveboard.contract.frames import Code, FrameError
from liveboard.serving.auth import Grant
from liveboard.serving.catalogue import Catalogue
from liveboard.serving.connection import Outlet, outlet
from liveboard.serving.gate import Forbidden, Gate
from liveboard.serving.metrics import Counters
from liveboard.serving.query import compile_query
from liveboard.serving.table import Applied, Table
from liveboard.serving.views import Views
from liveboard.serving.window import Window

_MAX_OFFSET = 2**53
# Beyond this many frames a second, all viewers together, each of them gets several changes in one.
_FRAMES_PER_S = 20_000
_SHORTEST_ROUND_S = 0.002
_GOODBYE_S = 1.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Limits(LimitSettings):
    """What one server and one viewer may have: what is configured, and what is not."""

    waiting: int = 1_000
    """Answers that a viewer has not read yet."""
    auth_within_s: float = frames.AUTH_WITHIN_S
    beat_every_s: float = frames.BEAT_EVERY_S


class Subscription:
    """A window under an id of the viewer's choice; with a name that can come to mean another table."""

    def __init__(self, asked: frames.Subscribe, viewer: Viewer, views: Views, limits: Limits) -> None:
        self.asked = asked
        self._viewer = viewer
        self._views = views
        self._limits = limits
        self._window: Window | None = None
        self._coming: Window | None = None
        self._step = 0
        self._version = 0
        self._rebound = False

    @property
    def table(self) -> Table | None:
        """The table that is shown, or will be as soon as its window is there."""
        window = self._coming or self._window
        return window.table if window else None

    def show(self, asked: frames.Subscribe, table: Table) -> None:
        """Moves to a window; the one before is shown until the new one has a content. A FrameError changes nothing."""
        check_window(asked.offset, asked.size, self._limits)
        query = compile_query(table.columns, asked.sort, asked.filter, asked.search, self._limits)
        window = self._views.open(table, query, asked.offset, asked.size, self)
        self.asked = asked
        if self._coming not in (None, window):
            self._leave(self._coming)
        self._coming = window
        self.changed()

    def changed(self) -> None:
        """A window has a new content."""
        if self._coming is not None and self._coming.is_ready:
            before, self._window, self._coming = self._window, self._coming, None
            self._step = 0
            if before not in (None, self._window):
                self._leave(before)
            if before is not None and before.table.generation != self._window.table.generation:
                self._rebound = True
        if self._window is not None and self._step < self._window.step:
            self._viewer.owe(self)

    def take(self, counters: Counters) -> list[str]:
        """The frames that lead to the newest content; none if the viewer has it."""
        window = self._window
        if window is None or self._step == window.step:
            return []
        texts = []
        if self._rebound:
            texts.append(frames.encode(frames.Rebound(self.asked.id, window.table.generation)))
            self._rebound = False
        event, body = window.since(self._step)
        if self._step and window.step - self._step > 1:
            counters.conflated(window.table.name)
        self._step = window.step
        self._version += 1
        texts.append(frames.framed(event, self.asked.id, self._version, body))
        if window.newest is not None:
            counters.sent(window.table.name, window.newest)
            window.newest = None
        return texts

    def close(self) -> None:
        """Nothing more comes of it."""
        for window in (self._window, self._coming):
            self._leave(window)
        self._window = self._coming = None

    def _leave(self, window: Window | None) -> None:
        if window is not None:
            self._views.close(window, self)


class Rounds:
    """When viewers are sent what is new: at once while they are few, all together from time to time when they are many.

    One timer for all: a timer for each viewer would be a fifth of what a frame costs.
    """

    def __init__(self) -> None:
        self.viewers: set[Viewer] = set()
        self._due: dict[Viewer, None] = {}
        self._next: asyncio.Handle | None = None
        self._last_s = 0.0

    def call(self, viewer: Viewer) -> None:
        """Has the viewer send in the next round."""
        self._due[viewer] = None
        if self._next is None:
            loop = asyncio.get_running_loop()
            length_s = len(self.viewers) / _FRAMES_PER_S
            is_short = length_s < _SHORTEST_ROUND_S
            self._next = loop.call_soon(self._go) if is_short else loop.call_at(self._last_s + length_s, self._go)

    def _go(self) -> None:
        self._last_s = asyncio.get_running_loop().time()
        self._next = None
        due, self._due = self._due, {}
        for viewer in due:
            viewer.send_owed()


class Viewer:
    """One connection, and what its key allows."""

    def __init__(self, grant: Grant, limits: Limits, rounds: Rounds, outlet: Outlet, counters: Counters) -> None:
        self.grant = grant
        self.subscriptions: dict[int, Subscription] = {}
        self._limits = limits
        self._rounds = rounds
        self._outlet = outlet
        self._counters = counters
        self._is_sending = False
        self._answers: deque[str] = deque()
        self._owed: dict[Subscription, None] = {}
        self._beat_due = False
        self._woken = asyncio.Event()

    @property
    def is_flooded(self) -> bool:
        """Whether it asks more than it reads."""
        return len(self._answers) > self._limits.waiting

    def say(self, frame: frames.ServerFrame) -> None:
        """Sends a frame, after those before."""
        self._answers.append(frames.encode(frame))
        self._woken.set()

    def owe(self, subscription: Subscription) -> None:
        """Sends what is new in a subscription, when its turn comes and the connection takes it."""
        self._owed[subscription] = None
        self._rounds.call(self)

    def beat(self) -> None:
        """Lets it know that the server is there; once, however long it does not read."""
        self._beat_due = True
        self._woken.set()

    def drop(self, id: int) -> None:
        """Ends a subscription, if there is one."""
        subscription = self.subscriptions.pop(id, None)
        if subscription is not None:
            self._owed.pop(subscription, None)
            subscription.close()

    def send_owed(self) -> None:
        """Sends what is owed as far as the connection takes it at once, and leaves the rest to `send_all`."""
        while self._owed and self._outlet.is_free and not self._is_sending and not self._answers:
            for text in self._take_owed():
                self._outlet.write(text)
        if self._owed:
            self._woken.set()

    async def send_all(self, send: Callable[[str], Awaitable[None]]) -> None:
        """Sends, and waits for the connection where it takes nothing, for as long as it lasts."""
        while True:
            await self._woken.wait()
            self._woken.clear()
            self._is_sending = True
            while self._answers or self._owed or self._beat_due:
                while self._answers:
                    await send(self._answers.popleft())
                if self._beat_due:
                    self._beat_due = False
                    await send(_BEAT)
                if self._owed:
                    for text in self._take_owed():
                        await send(text)
            self._is_sending = False

    def _take_owed(self) -> list[str]:
        subscription = next(iter(self._owed))
        del self._owed[subscription]
        return subscription.take(self._counters)


class Hub:
    """All viewers; belongs to the event loop, and is told by the catalogue what becomes of the tables."""

    def __init__(self, gate: Gate, views: Views, counters: Counters, limits: Limits) -> None:
        self.catalogue = Catalogue(self)
        self._gate = gate
        self._views = views
        self._counters = counters
        self._limits = limits
        self._rounds = Rounds()
        self._connections: Counter[str | None] = Counter()

    @property
    def viewers(self) -> set[Viewer]:
        """All that have the key."""
        return self._rounds.viewers

    @property
    def subscriptions(self) -> int:
        """Of all viewers."""
        return sum(len(viewer.subscriptions) for viewer in self.viewers)

    async def serve(self, socket: WebSocket) -> None:
        """One connection, from its first frame to its end."""
        try:
            self._gate.check_origin(socket)
        except Forbidden:
            # Before it is accepted: a browser gets 403.
            return await socket.close()
        await socket.accept()
        address = _client(socket)
        self._connections[address] += 1
        try:
            with contextlib.suppress(WebSocketDisconnect):
                if full := self._full(address):
                    return await _refuse(socket, Code.OVERLOADED, full, frames.OVERLOADED)
                grant = await self._let_in(socket)
                if grant:
                    await self._attend(socket, grant)
        finally:
            self._connections[address] -= 1
            if not self._connections[address]:
                del self._connections[address]
        return None

    def _full(self, address: str | None) -> str:
        for found, limit, of in (
            (self._connections.total(), self._limits.viewers, "viewers"),
            (self._connections[address], self._limits.viewers_per_address, "viewers from one address"),
        ):
            if found > limit:
                return f"expected up to {limit} {of}, found one more; try again later"
        return ""

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
                    table = self.catalogue.find(viewer.grant, asked.table, asked.generation)
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

    async def _let_in(self, socket: WebSocket) -> Grant | None:
        message = f"expected the frame auth with a key of the server within {self._limits.auth_within_s:g} s"
        try:
            async with asyncio.timeout(self._limits.auth_within_s):
                frame = frames.decode_client(await _receive(socket))
        except TimeoutError:
            frame, message = None, f"{message}, found nothing"
        except FrameError:
            frame, message = None, f"{message}, found something else"
        if not isinstance(frame, frames.Auth):
            self._counters.refused()
            _log.warning("viewer without a key", extra={"client": _client(socket)})
            await _refuse(socket, Code.UNAUTHORIZED, message, frames.UNAUTHORIZED)
            return None
        try:
            grant = await self._gate.grant(socket, frame.psk)
        except FrameError as error:
            close = frames.UNAUTHORIZED if error.code is Code.UNAUTHORIZED else frames.OVERLOADED
            await _refuse(socket, error.code, str(error), close)
            return None
        if frame.protocol != frames.PROTOCOL:
            message = f"expected protocol {frames.PROTOCOL}, found {frame.protocol}"
            await _refuse(socket, Code.BAD_FRAME, message, frames.UNSUPPORTED)
            return None
        return grant

    async def _attend(self, socket: WebSocket, grant: Grant) -> None:
        viewer = Viewer(grant, self._limits, self._rounds, outlet(socket), self._counters)
        viewer.say(frames.Ready(self.catalogue.infos(grant), grant.role, f"liveboard {__version__}"))
        self.viewers.add(viewer)
        sender = asyncio.create_task(self._send(viewer, socket))
        try:
            while not viewer.is_flooded:
                try:
                    self._obey(viewer, frames.decode_client(await _receive(socket)))
                except FrameError as error:
                    viewer.say(frames.Error(error.id, error.code, str(error)))
        finally:
            self.viewers.discard(viewer)
            for id in tuple(viewer.subscriptions):
                viewer.drop(id)
            sender.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await sender
        _log.warning("viewer does not read", extra={"client": _client(socket)})
        message = f"expected a viewer that reads, found {self._limits.waiting} answers waiting"
        await _refuse(socket, Code.OVERLOADED, message, frames.OVERLOADED)

    async def _send(self, viewer: Viewer, socket: WebSocket) -> None:
        # When the connection ends while something is sent, the side that receives hears of it too.
        with contextlib.suppress(WebSocketDisconnect, RuntimeError):
            await viewer.send_all(socket.send_text)

    def _obey(self, viewer: Viewer, frame: frames.ClientFrame) -> None:
        match frame:
            case frames.Subscribe():
                self._subscribe(viewer, frame)
            case frames.Window():
                self._move(viewer, frame)
            case frames.Unsubscribe():
                viewer.drop(frame.id)
            case frames.Auth():
                raise FrameError(Code.BAD_FRAME, "expected one auth frame in a connection, found another")

    def _subscribe(self, viewer: Viewer, asked: frames.Subscribe) -> None:
        if asked.id in viewer.subscriptions:
            raise FrameError(Code.BAD_FRAME, f"expected a new id, found {asked.id}, which is in use", asked.id)
        if len(viewer.subscriptions) >= self._limits.subscriptions:
            expected = f"expected up to {self._limits.subscriptions} subscriptions on a connection"
            raise FrameError(Code.TOO_MANY, f"{expected}, found one more", asked.id)
        subscription = Subscription(asked, viewer, self._views, self._limits)
        with _about(asked.id):
            subscription.show(asked, self.catalogue.find(viewer.grant, asked.table, asked.generation))
        viewer.subscriptions[asked.id] = subscription

    def _move(self, viewer: Viewer, frame: frames.Window) -> None:
        subscription = viewer.subscriptions.get(frame.id)
        if subscription is None or subscription.table is None:
            raise FrameError(Code.BAD_WINDOW, f"expected the id of a subscription, found {frame.id}", frame.id)
        named = {name: value for name, value in msgspec.structs.asdict(frame).items() if value is not msgspec.UNSET}
        with _about(frame.id):
            subscription.show(msgspec.structs.replace(subscription.asked, **named), subscription.table)

    def _end(self, viewer: Viewer, id: int, error: FrameError) -> None:
        viewer.drop(id)
        viewer.say(frames.Error(id, error.code, str(error)))


def check_window(offset: int, size: int, limits: LimitSettings) -> None:
    """Whether there can be such a window; otherwise a FrameError."""
    if not 1 <= size <= limits.window_rows:
        raise FrameError(Code.BAD_WINDOW, f"expected a size from 1 to {limits.window_rows}, found {size}")
    if not 0 <= offset <= _MAX_OFFSET:
        raise FrameError(Code.BAD_WINDOW, f"expected an offset from 0 to {_MAX_OFFSET}, found {offset}")


_BEAT = frames.encode(frames.Beat())


@contextlib.contextmanager
def _about(id: int) -> Iterator[None]:
    """Says in a FrameError which subscription it is about."""
    try:
        yield
    except FrameError as error:
        raise FrameError(error.code, str(error), id) from None


async def _receive(socket: WebSocket) -> str:
    message = await socket.receive()
    if message["type"] == "websocket.disconnect":
        raise WebSocketDisconnect(message.get("code", 1000))
    text = message.get("text")
    if text is None:
        raise FrameError(Code.BAD_FRAME, "expected a text frame, found a binary one")
    return str(text)


async def _refuse(socket: WebSocket, code: Code, message: str, close: int) -> None:
    # Who does not read does not hear why, either.
    with contextlib.suppress(WebSocketDisconnect, RuntimeError, TimeoutError):
        async with asyncio.timeout(_GOODBYE_S):
            await socket.send_text(frames.encode(frames.Error(None, code, message)))
            await socket.close(close, code)


def _client(socket: WebSocket) -> str | None:
    return socket.client.host if socket.client else None
