"""The one connection of a client: a state machine that keeps itself connected, and what is subscribed on it."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import random
import ssl
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from enum import Enum
from typing import Protocol

from websockets.exceptions import ConnectionClosed, WebSocketException

from liveboard.backoff import Backoff
from liveboard.client.address import Address, Unauthorized, Unreachable, untrusted
from liveboard.client.subscription import Listener, Shared, Subscription
from liveboard.client.update import FrameGap
from liveboard.contract import frames
from liveboard.contract.errors import LiveboardError
from liveboard.contract.frames import Code

SILENCE_S = 30.0
FIRST_WAIT_S = 0.15
LONGEST_WAIT_S = 10.0
_PASSING = (Code.UNKNOWN_TABLE, Code.TOO_MANY, Code.OVERLOADED)

_log = logging.getLogger(__name__)


class Socket(Protocol):
    """An open WebSocket."""

    async def send(self, message: str, /) -> None:
        """Sends a text."""

    async def recv(self) -> str | bytes:
        """The next message."""


Dial = Callable[[], AbstractAsyncContextManager[Socket]]


class ConnectionState(Enum):
    """What a connection is doing."""

    IDLE = "idle"
    CONNECTING = "connecting"
    READY = "ready"
    WAITING = "waiting"
    """Before the next try."""
    REFUSED = "refused"
    """The server will never let this client in."""
    CLOSED = "closed"


_MOVES = {
    ConnectionState.IDLE: {ConnectionState.CONNECTING, ConnectionState.CLOSED},
    ConnectionState.CONNECTING: {
        ConnectionState.READY,
        ConnectionState.WAITING,
        ConnectionState.REFUSED,
        ConnectionState.CLOSED,
    },
    ConnectionState.READY: {ConnectionState.WAITING, ConnectionState.REFUSED, ConnectionState.CLOSED},
    ConnectionState.WAITING: {ConnectionState.CONNECTING, ConnectionState.CLOSED},
    ConnectionState.REFUSED: {ConnectionState.CLOSED},
    ConnectionState.CLOSED: set(),
}


class Connection:
    """Belongs to the event loop that `open` was called in.

    One task connects, receives and, after the connection is lost, waits and connects again: so there is never more than
    one attempt. Ids are never used twice, so what still comes for an earlier attachment finds nobody.
    """

    def __init__(
        self,
        address: Address,
        dial: Dial,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        silence_s: float = SILENCE_S,
    ) -> None:
        self.state = ConnectionState.IDLE
        self._address = address
        self._dial = dial
        self._sleep = sleep
        self._silence_s = silence_s
        self._server_backoff = Backoff(LONGEST_WAIT_S, FIRST_WAIT_S, random.random)
        self._table_backoff = Backoff(LONGEST_WAIT_S, FIRST_WAIT_S, random.random)
        self._ids = itertools.count(1)
        self._shares: dict[str, Shared] = {}
        self._by_id: dict[int, Shared] = {}
        self._outbox: asyncio.Queue[frames.ClientFrame] = asyncio.Queue()
        self._lost = asyncio.Event()
        self._away: tuple[datetime, str, LiveboardError | None] | None = None
        self._task: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Connects; Unauthorized or Unreachable if the first attempt fails. From then on it heals itself."""
        opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._run(opened), name="liveboard connection")
        try:
            await opened
        except BaseException:
            await self.close()
            raise

    def subscribe(self, asked: frames.Subscribe, listener: Listener | None) -> Subscription:
        """Shows a window to a listener, from now on; what is there already at once."""
        if self.state is ConnectionState.CLOSED:
            raise LiveboardError("expected an open client, found a closed one")
        return Subscription(self, asked, listener)

    def join(self, asked: frames.Subscribe, subscription: Subscription) -> Shared:
        """Adds a listener to the subscription on the wire, which the first one opens."""
        # The text, because Python takes the filters 1, 1.0 and True for equal.
        name = frames.encode(asked)
        shared = self._shares.get(name)
        if shared is None:
            shared = self._shares[name] = Shared(asked)
            if self.state is ConnectionState.READY:
                self._ask(shared)
            elif self._away is not None:
                shared.mark(*self._away)
        shared.listeners[subscription] = None
        return shared

    def leave(self, shared: Shared, subscription: Subscription) -> None:
        """Takes a listener away; the last one closes the subscription on the wire."""
        if subscription not in shared.listeners:
            return
        del shared.listeners[subscription]
        if not shared.listeners:
            del self._shares[frames.encode(shared.asked)]
            self._unsubscribe(shared)

    async def close(self) -> None:
        """Ends all subscriptions and the connection; harmless when it has ended."""
        if self.state is not ConnectionState.CLOSED:
            self._move(ConnectionState.CLOSED)
            for shared in tuple(self._shares.values()):
                for subscription in tuple(shared.listeners):
                    subscription.close()
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    def _move(self, state: ConnectionState) -> None:
        if state not in _MOVES[self.state]:
            raise RuntimeError(f"expected one of {_MOVES[self.state]} after {self.state}, found {state}")
        _log.debug("connection %s", state.value)
        self.state = state

    async def _run(self, opened: asyncio.Future[None]) -> None:
        while True:
            self._move(ConnectionState.CONNECTING)
            try:
                async with self._dial() as socket:
                    await self._greet(socket)
                    self._move(ConnectionState.READY)
                    self._away = None
                    if not opened.done():
                        opened.set_result(None)
                    await self._attend(socket)
            except Exception as error:
                failure = self._failure(error)
            if not opened.done():
                opened.set_exception(failure)
                return
            is_final = not isinstance(failure, Unreachable)
            self._move(ConnectionState.REFUSED if is_final else ConnectionState.WAITING)
            self._lose(failure, is_final)
            if is_final:
                return
            await self._sleep(self._server_backoff.failed())

    async def _greet(self, socket: Socket) -> None:
        await socket.send(frames.encode(frames.Auth(self._address.psk.reveal())))
        match await self._hear(socket):
            case frames.Ready():
                return
            case frames.Error(code=Code.UNAUTHORIZED):
                raise Unauthorized
            case frames.Error(code=Code.OVERLOADED, message=message):
                raise Unreachable(f"{self._address.url}: {message}")
            case frames.Error(message=message):
                raise LiveboardError(f"{self._address.url}: {message}")
            case _:
                raise Unreachable(f"{self._address.url}: expected the frame ready, found another")

    async def _attend(self, socket: Socket) -> None:
        """Receives for as long as the connection lasts."""
        self._outbox = asyncio.Queue()
        self._lost.clear()
        for shared in self._shares.values():
            if shared.error is None:
                self._ask(shared)
        helpers = [asyncio.create_task(self._send(socket)), asyncio.create_task(self._rejoin())]
        try:
            while True:
                frame = await self._hear(socket)
                self._server_backoff.reset()
                if frame is not None:
                    self._take(frame)
        finally:
            for helper in helpers:
                helper.cancel()
            await asyncio.gather(*helpers, return_exceptions=True)

    async def _send(self, socket: Socket) -> None:
        # When the connection ends while something is sent, the side that receives hears of it too.
        with contextlib.suppress(OSError, WebSocketException):
            while True:
                await socket.send(frames.encode(await self._outbox.get()))

    async def _rejoin(self) -> None:
        """Asks again for what the server has refused or lost, all of it at once."""
        while True:
            await self._lost.wait()
            await self._sleep(self._table_backoff.failed())
            self._lost.clear()
            for shared in tuple(self._shares.values()):
                if shared.id is None and shared.error is None:
                    self._ask(shared)

    async def _hear(self, socket: Socket) -> frames.ServerFrame | None:
        """The next frame, or None if it cannot be read: the versions then show that one is missing."""
        try:
            async with asyncio.timeout(self._silence_s):
                text = await socket.recv()
            return frames.decode_server(text)
        except TimeoutError:
            raise Unreachable(
                f"{self._address.url}: expected a frame within {self._silence_s:g} s, found silence"
            ) from None
        except frames.FrameError as error:
            _log.warning("%s: %s", self._address.url, error)
            return None

    def _take(self, frame: frames.ServerFrame) -> None:
        match frame:
            case frames.Snapshot() | frames.Delta():
                if shared := self._by_id.get(frame.id):
                    self._show(shared, frame)
            case frames.Error(id=int(id), message=message):
                if shared := self._by_id.pop(id, None):
                    # It has shown rows, so what it asks for was possible: it is the table that has changed.
                    is_passing = frame.code in _PASSING or shared.update is not None
                    shared.mark(_now(), message, None if is_passing else LiveboardError(message))
                    if is_passing:
                        self._lost.set()
            case frames.Error(message=message):
                _log.warning("%s: %s", self._address.url, message)
            case _:
                # A beat has done its work by being heard, and after `rebound` comes the snapshot.
                pass

    def _show(self, shared: Shared, frame: frames.Snapshot | frames.Delta) -> None:
        try:
            shared.take(frame)
        except FrameGap as gap:
            self._unsubscribe(shared)
            shared.mark(_now(), str(gap))
            self._lost.set()
        else:
            if all(shared.is_live or shared.error for shared in self._shares.values()):
                self._table_backoff.reset()

    def _ask(self, shared: Shared) -> None:
        asked = shared.asked_as(next(self._ids))
        self._by_id[asked.id] = shared
        self._outbox.put_nowait(asked)

    def _unsubscribe(self, shared: Shared) -> None:
        if shared.id is not None and shared.id in self._by_id:
            del self._by_id[shared.id]
            self._outbox.put_nowait(frames.Unsubscribe(shared.id))

    def _lose(self, failure: LiveboardError, is_final: bool) -> None:
        self._by_id.clear()
        self._away = (self._away[0] if self._away else _now(), str(failure), failure if is_final else None)
        for shared in tuple(self._shares.values()):
            if shared.error is None:
                shared.mark(*self._away)

    def _failure(self, error: Exception) -> LiveboardError:
        """What went wrong, in words; anything but Unreachable is final."""
        if isinstance(error, LiveboardError):
            return error
        if isinstance(error, ConnectionClosed) and error.rcvd is not None:
            code, reason = error.rcvd.code, error.rcvd.reason
            if code == frames.UNAUTHORIZED:
                return Unauthorized()
            return Unreachable(f"{self._address.url}: expected an open connection, found it closed ({code} {reason})")
        if isinstance(error, ssl.SSLCertVerificationError):
            return untrusted(self._address.url, error)
        if not isinstance(error, OSError | WebSocketException):
            _log.exception("%s: the connection failed", self._address.url)
        return Unreachable(f"{self._address.url}: expected a liveboard server, found none ({error})")


def _now() -> datetime:
    return datetime.now(UTC)
