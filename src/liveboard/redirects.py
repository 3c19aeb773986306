"""Questions over HTTP that go to the address that is configured, and to no other."""

from __future__ import annotations

import urllib.request
from typing import Any


class NoRedirects(urllib.request.HTTPRedirectHandler):
    """Takes a redirect for the answer: to follow it would carry a login, or what is sent, to another host."""

    def redirect_request(self, *_: Any) -> None:
        return None
