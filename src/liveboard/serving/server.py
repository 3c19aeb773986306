"""The live-table server as a whole: the feed, the tables, the viewers, and uvicorn around them."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import gc
import logging
import sys
import threading
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp

from liveboard.config import ServerSettings, Settings
from liveboard.contract.board import View
from liveboard.contract.errors import LiveboardError
from liveboard.contract.names import Names
from liveboard.kafka import security
from liveboard.serving.app import Routes
from liveboard.serving.auth import Keys, check_keys, is_loopback
from liveboard.serving.board_routes import BoardRoutes
from liveboard.serving.catalogue import Catalogue
from liveboard.serving.export import Exports
from liveboard.serving.feed import Feed
from liveboard.serving.gate import Gate
from liveboard.serving.headers import SecurityHeaders
from liveboard.serving.hub import Hub
from liveboard.serving.keeping import Keeping
from liveboard.serving.limits import Limits
from liveboard.serving.lineage import Lineage
from liveboard.serving.log import keep_frames_out
from liveboard.serving.login import Logins
from liveboard.serving.metrics import Counters, Gauges
from liveboard.serving.page import Page
from liveboard.serving.port import listening
from liveboard.serving.preview import Previews
from liveboard.serving.readiness import Readiness
from liveboard.serving.reception import Reception
from liveboard.serving.records import Lookups
from liveboard.serving.saved import Saved
from liveboard.serving.snapshots import Snapshots
from liveboard.serving.sql_views import SqlViews
from liveboard.serving.table_routes import TableRoutes
from liveboard.serving.throttle import Throttle
from liveboard.serving.tls import Certificate
from liveboard.serving.topic_writer import TopicWriter
from liveboard.serving.topics import Topics
from liveboard.serving.viewer_socket import ViewerSocket
from liveboard.serving.views import Views

_PING_S = 20.0
_GOODBYE_S = 5
_WATCH_S = 0.1
_SWITCH_S = 0.001
_SNAPSHOTS = "server"
_USED_LINKS = "used-login-links.json"

_log = logging.getLogger(__name__)


class LiveServer:
    """One server on one port; while it runs, its parts are there for those who look inside."""

    catalogue: Catalogue
    views: Views
    hub: Hub
    feed: Feed
    exports: Exports
    sql: SqlViews

    def __init__(
        self,
        server: ServerSettings,
        client_config: Mapping[str, str],
        names: Names,
        limits: Limits | None = None,
        storage: Path | None = None,
        views: Sequence[View] = (),
    ) -> None:
        self._settings = server
        self._client_config = client_config
        self._names = names
        self._limits = limits or Limits(**dataclasses.asdict(server.limits))
        self._storage = storage
        self._board_views = views
        check_keys(server)
        self._certificate = Certificate(server.tls_cert_file, server.tls_key_file) if server.tls_cert_file else None
        self._socket = listening(server.host, server.port)

    @property
    def address(self) -> str:
        """Where viewers find it."""
        host, port = self._socket.getsockname()[:2]
        scheme = "https" if self._certificate else "http"
        return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"

    def run(self, stopping: threading.Event, started: Callable[[], None] = lambda: None) -> None:
        """Serves until the event is set; viewers are then told to come back, and everything is ended.

        A LiveboardError if the tables cannot be kept up to date any more.
        """
        keep_frames_out()
        certificate = self._certificate
        if certificate is None and not is_loopback(self._settings.host):
            _log.warning("keys and tables are sent without TLS; use server.tls_cert_file, or a proxy that has TLS")
        config = uvicorn.Config(
            self._app,
            factory=True,
            log_config=None,
            access_log=False,
            server_header=False,
            ws=ViewerSocket,
            ws_per_message_deflate=False,
            ws_max_size=self._limits.frame_bytes,
            ws_ping_interval=_PING_S,
            ws_ping_timeout=_PING_S,
            timeout_graceful_shutdown=_GOODBYE_S,
            lifespan="on",
            # Otherwise anyone on this machine could say that they are somebody else.
            proxy_headers=bool(self._settings.trusted_proxies),
            forwarded_allow_ips=list(self._settings.trusted_proxies),
            ssl_context_factory=(lambda *_: certificate.context) if certificate else None,
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
        if self.feed.health.crash:
            raise LiveboardError(self.feed.health.crash)

    async def _serve(self, server: uvicorn.Server, stopping: threading.Event, started: Callable[[], None]) -> None:
        async def watch() -> None:
            announced = False
            while not stopping.is_set() and not (server.started and self.feed.health.crash):
                if server.started and not announced:
                    announced = True
                    started()
                await asyncio.sleep(_WATCH_S)
            server.should_exit = True

        tasks = [asyncio.create_task(watch())]
        if self._certificate:
            tasks.append(asyncio.create_task(self._certificate.follow()))
        try:
            await server.serve(sockets=[self._socket])
        finally:
            for task in tasks:
                task.cancel()

    def _app(self) -> ASGIApp:
        counters = Counters()
        settings, limits = self._settings, self._limits
        self.catalogue = Catalogue()
        self.views = Views(limits.queries, limits.windows)
        self.sql = SqlViews(self._board_views, self.catalogue, self.views, limits, counters)
        keys = Keys(settings, self.sql.defined)
        gate = Gate(keys, Throttle(limits.failed_logins), settings.origins, counters)
        self.hub = self.catalogue.watcher = Hub(self.catalogue, self.views, counters, limits, self.sql)
        loop = asyncio.get_running_loop()
        saved = Saved()
        saved.defined = self.sql.define
        snapshots = Snapshots(self._storage / _SNAPSHOTS if self._storage else None)
        self.feed = Feed(self._client_config, self._names, self.catalogue, loop, settings.max_rows, saved, snapshots)
        readiness = Readiness(self.catalogue, self.feed.health, self.sql)
        counters.registry.register(Gauges(self.catalogue, self.hub, self.views, self.feed, self.sql, readiness))
        self.exports = Exports(limits.exports)
        views_writer = TopicWriter(self._client_config, self._names.saved, is_changelog=True)
        lookups = Lookups()

        @contextlib.asynccontextmanager
        async def lifespan(_: Starlette) -> AsyncIterator[None]:
            self.feed.start()
            self.sql.start()
            beating = asyncio.create_task(self.hub.beat())
            try:
                yield
            finally:
                beating.cancel()
                await self.feed.stop()
                await snapshots.stop()
                await self.sql.stop()
                await self.exports.stop()
                await self.views.stop()
                keys.stop()
                lookups.stop()

        routes = Routes(
            gate,
            Logins(settings.psk, self._storage / _USED_LINKS if self._storage else None),
            Reception(gate, self.hub, counters, limits),
            TableRoutes(
                self.catalogue,
                self.views,
                self.exports,
                Lineage(self.catalogue, lookups, self._client_config),
                self.sql,
                limits,
            ),
            BoardRoutes(
                TopicWriter(self._client_config, self._names.control),
                Topics(self._client_config, self._names),
                Previews(self.catalogue, lookups, self._client_config, self._names),
                Keeping(saved, views_writer, self._names.saved, limits, self.sql),
                limits,
            ),
            readiness,
            counters,
            Page(ancestors=settings.frame_ancestors),
        )
        middleware = []
        if settings.origins:
            middleware.append(
                Middleware(
                    CORSMiddleware,
                    allow_origins=settings.origins,
                    allow_methods=["GET", "POST", "PUT", "DELETE"],
                    allow_headers=["Authorization", "Content-Type"],
                )
            )
        # Around everything, so that even an error of the server's own has them.
        return SecurityHeaders(routes.app(middleware, lifespan), is_tls=self._certificate is not None)


def run(settings: Settings, bootstrap: str, show: Callable[[str], None], stopping: threading.Event) -> None:
    """The server of a configuration, until the event is set."""
    client_config = security.librdkafka(settings.kafka, bootstrap)
    views = tuple(settings.board.views.values())
    server = LiveServer(settings.server, client_config, settings.names, storage=settings.storage.dir, views=views)
    server.run(stopping, lambda: show(f"live tables at {server.address}, from Kafka {bootstrap}, Ctrl-C stops"))
