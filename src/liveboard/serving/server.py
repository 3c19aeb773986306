"""The live-table server as a whole: the feed, the tables, the viewers, and uvicorn around them."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import socket
import sys
import threading
from collections.abc import AsyncIterator, Callable, Mapping

import uvicorn
from starlette.applications import Starlette

from liveboard.config import ServerSettings, Settings
from liveboard.contract.frames import MAX_CLIENT_FRAME_BYTES
from liveboard.errors import LiveboardError
from liveboard.kafka import security
from liveboard.serving.app import Api
from liveboard.serving.auth import Key
from liveboard.serving.control import ControlWriter
from liveboard.serving.export import Exports
from liveboard.serving.feed import Feed
from liveboard.serving.hub import Hub, Limits
from liveboard.serving.log import keep_frames_out
from liveboard.serving.login import Logins
from liveboard.serving.metrics import Counters, Gauges
from liveboard.serving.page import Page
from liveboard.serving.topics import Topics
from liveboard.serving.views import Views

_PING_S = 20.0
_GOODBYE_S = 5
_WATCH_S = 0.1
_SWITCH_S = 0.001

_log = logging.getLogger(__name__)


class LiveServer:
    """One server on one port; while it runs, its parts are there for those who look inside."""

    hub: Hub
    views: Views
    feed: Feed
    exports: Exports

    def __init__(
        self,
        server: ServerSettings,
        client_config: Mapping[str, str],
        control_topic: str,
        limits: Limits | None = None,
    ) -> None:
        self._settings = server
        self._client_config = client_config
        self._control_topic = control_topic
        self._limits = limits
        self._key = Key(server.psk)
        self._socket = _listening(server.host, server.port)

    @property
    def address(self) -> str:
        """Where viewers find it."""
        host, port = self._socket.getsockname()[:2]
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    def run(self, stopping: threading.Event, started: Callable[[], None] = lambda: None) -> None:
        """Serves until the event is set; viewers are then told to come back, and everything is ended.

        A LiveboardError if the tables cannot be kept up to date any more.
        """
        keep_frames_out()
        config = uvicorn.Config(
            self._app,
            factory=True,
            log_config=None,
            access_log=False,
            server_header=False,
            ws="websockets-sansio",
            ws_per_message_deflate=False,
            ws_max_size=MAX_CLIENT_FRAME_BYTES,
            ws_ping_interval=_PING_S,
            ws_ping_timeout=_PING_S,
            timeout_graceful_shutdown=_GOODBYE_S,
            lifespan="on",
        )
        # The feed's thread lets the event loop in this often, five times as often as by default.
        sys.setswitchinterval(_SWITCH_S)
        # What is there now stays; looking for garbage in all of it would stop the event loop for 40 ms at a time.
        gc.freeze()
        try:
            with self._socket:
                asyncio.run(self._serve(uvicorn.Server(config), stopping, started))
        finally:
            gc.unfreeze()
        if self.feed.failure:
            raise LiveboardError(self.feed.failure)

    async def _serve(self, server: uvicorn.Server, stopping: threading.Event, started: Callable[[], None]) -> None:
        async def watch() -> None:
            announced = False
            while not stopping.is_set() and not (server.started and self.feed.failure):
                if server.started and not announced:
                    announced = True
                    started()
                await asyncio.sleep(_WATCH_S)
            server.should_exit = True

        watching = asyncio.create_task(watch())
        try:
            await server.serve(sockets=[self._socket])
        finally:
            watching.cancel()

    def _app(self) -> Starlette:
        counters = Counters()
        self.views = Views()
        self.hub = Hub(self._key, self.views, counters, self._limits)
        loop = asyncio.get_running_loop()
        self.feed = Feed(self._client_config, self.hub.catalogue, loop, self._settings.max_rows)
        counters.registry.register(Gauges(self.hub, self.views, self.feed))
        self.exports = Exports()
        control = ControlWriter(self._client_config, self._control_topic)

        @contextlib.asynccontextmanager
        async def lifespan(_: Starlette) -> AsyncIterator[None]:
            self.feed.start()
            control.start()
            beating = asyncio.create_task(self.hub.beat())
            try:
                yield
            finally:
                beating.cancel()
                await self.feed.stop()
                await control.stop()
                await self.exports.stop()
                await self.views.stop()

        api = Api(
            self._key,
            Logins(self._settings.psk),
            self.hub,
            self.views,
            self.feed,
            control,
            Topics(self._client_config, self._control_topic),
            self.exports,
            counters,
            Page(),
        )
        return api.app(lifespan)


def run(settings: Settings, bootstrap: str, show: Callable[[str], None], stopping: threading.Event) -> None:
    """The server of a configuration, until the event is set."""
    client_config = security.librdkafka(settings.kafka, bootstrap)
    server = LiveServer(settings.server, client_config, settings.control.topic)
    server.run(stopping, lambda: show(f"live tables at {server.address}, from Kafka {bootstrap}, Ctrl-C stops"))


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        raise LiveboardError(
            f"server.port: expected a free port {port} of {host}, found: {error.strerror}; stop what uses it, or set "
            "another one"
        ) from None
