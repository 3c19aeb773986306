"""What every answer tells browsers: to guess nothing, to frame nothing, to tell nobody where they come from."""

from __future__ import annotations

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_FRAMED_BY_NOBODY = "frame-ancestors 'none'"
_POLICY = f"default-src 'none'; {_FRAMED_BY_NOBODY}"
_ONE_YEAR_S = 365 * 24 * 3600


class SecurityHeaders:
    """Adds the headers that an answer does not have itself."""

    def __init__(self, app: ASGIApp, is_tls: bool) -> None:
        self._app = app
        self._headers = {
            "Content-Security-Policy": _POLICY,
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
            # Tables belong to those who have the key, not to caches on the way.
            "Cache-Control": "no-store",
        }
        if is_tls:
            self._headers |= {
                "Strict-Transport-Security": f"max-age={_ONE_YEAR_S}",
                "Cross-Origin-Opener-Policy": "same-origin",
            }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes everything on."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in self._headers.items():
                    headers.setdefault(name, value)
                # The older header knows no list of sites.
                if _FRAMED_BY_NOBODY in headers["Content-Security-Policy"]:
                    headers.setdefault("X-Frame-Options", "DENY")
            await send(message)

        await self._app(scope, receive, send_with_headers if scope["type"] == "http" else send)
