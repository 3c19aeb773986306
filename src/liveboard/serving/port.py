"""The port that a server listens on."""

from __future__ import annotations

import socket

from liveboard.contract.errors import LiveboardError


def listening(host: str, port: int) -> socket.socket:
    """A socket that takes connections, at any free port for 0; a LiveboardError if somebody else has the port."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        raise LiveboardError(
            f"server.port: expected a free port {port} of {host}, found: {error.strerror}; stop what uses it, or set "
            "another one"
        ) from None
