"""Slows down whoever tries keys.

An address may fail a few times; after that its keys are not even looked at until some time has passed, a little for
each failure. The right key does not help either in that time, otherwise the answer would tell that it is the right one.
"""

from __future__ import annotations

import ipaddress
import time
from collections import OrderedDict
from collections.abc import Callable

FORGIVEN_EVERY_S = 3.0
"""One failure of an address is forgotten in this time."""
_MAX_ADDRESSES = 10_000


class Throttle:
    """The failures of each address; the addresses that failed longest ago are forgotten first."""

    def __init__(self, allowed: int, now: Callable[[], float] = time.monotonic) -> None:
        self._allowed = allowed
        self._now = now
        # When all failures of an address are forgotten.
        self._clear_at: OrderedDict[str, float] = OrderedDict()

    def wait_s(self, address: str | None) -> float:
        """How long the address has to wait before its next try; 0 if it may try."""
        owed = self._clear_at.get(_network(address), 0.0) - self._now()
        return max(0.0, owed - (self._allowed - 1) * FORGIVEN_EVERY_S)

    def failed(self, address: str | None) -> None:
        """The address has tried a wrong key."""
        network, now = _network(address), self._now()
        self._clear_at[network] = max(now, self._clear_at.pop(network, 0.0)) + FORGIVEN_EVERY_S
        if len(self._clear_at) > _MAX_ADDRESSES:
            self._clear_at.popitem(last=False)


def _network(address: str | None) -> str:
    """Who has an IPv6 address has 2^64 of them."""
    try:
        found = ipaddress.ip_address(address or "")
    except ValueError:
        return address or ""
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is None:
        return str(ipaddress.ip_network((found, 64), strict=False))
    return str(found)
