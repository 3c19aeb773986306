"""A viewer's connection: uvicorn's WebSocket, and a way to send without waiting."""

from __future__ import annotations

from typing import Protocol, cast

from starlette.websockets import WebSocket
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.exceptions import InvalidState
from websockets.protocol import State

_EXTENSION = "liveboard.outlet"


class Outlet(Protocol):
    """Sends what the connection takes at once: no task has to wake up for it, which costs half as much as sending."""

    @property
    def is_free(self) -> bool:
        """Whether the connection is open and takes more."""

    def write(self, text: str) -> None:
        """Sends a text frame; only while `is_free`."""


class Connection(WebSocketsSansIOProtocol):
    """What uvicorn makes for every WebSocket; `outlet` finds it."""

    async def run_asgi(self) -> None:
        """Serves the connection."""
        cast("dict[str, object]", self.scope["extensions"])[_EXTENSION] = self
        await super().run_asgi()

    @property
    def is_free(self) -> bool:
        """Whether the connection is open and takes more."""
        return self.conn.state is State.OPEN and self.writable.is_set() and not self.disconnected

    def write(self, text: str) -> None:
        """Sends a text frame; only while `is_free`."""
        self.conn.send_text(text.encode())
        self.transport.write(b"".join(self.conn.data_to_send()))

    def shutdown(self) -> None:
        """Tells the viewer to come back."""
        try:
            super().shutdown()
        except InvalidState:
            # It is leaving just now. uvicorn does not expect that, and would end the server with an error.
            self.transport.abort()


def outlet(socket: WebSocket) -> Outlet:
    """Of a connection that was accepted."""
    return cast(Outlet, socket.scope["extensions"][_EXTENSION])
