"""Ports for those who must know theirs before they use it."""

from __future__ import annotations

import os
import socket
from itertools import count

# Below those that the system gives to connections, so that nobody gets one by chance while its owner is away; every
# process begins elsewhere.
_FIRST, _COUNT = 10_000, 20_000
_numbers = count(os.getpid() * 61)


def closed_port() -> int:
    """A port of 127.0.0.1 at which nobody answers."""
    while True:
        port = _FIRST + next(_numbers) % _COUNT
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
