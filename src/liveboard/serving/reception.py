"""Every WebSocket from its first frame to its end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import Counter

from starlette.websockets import WebSocket, WebSocketDisconnect

from liveboard.contract import frames
from liveboard.contract.frames import Code, FrameError
from liveboard.serving.auth import Grant
from liveboard.serving.gate import Forbidden, Gate
from liveboard.serving.hub import Hub
from liveboard.serving.limits import Limits
from liveboard.serving.metrics import Counters
from liveboard.serving.viewer import Viewer
from liveboard.serving.viewer_socket import outlet

_GOODBYE_S = 1.0

_log = logging.getLogger(__name__)


class Reception:
    """Lets those in who have a key, as long as there is room, and passes on to the hub what they ask for."""

    def __init__(self, gate: Gate, hub: Hub, counters: Counters, limits: Limits) -> None:
        self._gate = gate
        self._hub = hub
        self._counters = counters
        self._limits = limits
        self._connections: Counter[str | None] = Counter()

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
        viewer = self._hub.enter(grant, outlet(socket))
        sender = asyncio.create_task(self._send(viewer, socket))
        try:
            while not viewer.is_flooded:
                try:
                    self._hub.obey(viewer, frames.decode_client(await _receive(socket)))
                except FrameError as error:
                    viewer.say(frames.Error(error.id, error.code, str(error)))
        finally:
            self._hub.leave(viewer)
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
