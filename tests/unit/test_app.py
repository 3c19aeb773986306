"""The paths of a server: which of them need a key, and which an admin's; what they answer is in tests/integration/."""

from __future__ import annotations

import asyncio
from collections.abc import MutableMapping
from types import SimpleNamespace
from typing import Any, cast

import orjson
import pytest
from starlette.applications import Starlette
from starlette.routing import Route

from liveboard.config import Secret, ServerSettings
from liveboard.config.settings import KeySettings
from liveboard.serving.app import Routes
from liveboard.serving.auth import Keys
from liveboard.serving.board_routes import BoardRoutes
from liveboard.serving.gate import Gate
from liveboard.serving.login import Logins
from liveboard.serving.metrics import Counters
from liveboard.serving.page import Page
from liveboard.serving.table_routes import TableRoutes
from liveboard.serving.throttle import Throttle

VIEWER, ADMIN = "the key of a viewer", "the key of an admin"
KEYS = {
    "reader": KeySettings(name="reader", key=Secret(VIEWER), role="viewer"),
    "boss": KeySettings(name="boss", key=Secret(ADMIN), role="admin"),
}
NOBODYS: Any = SimpleNamespace()
"""A part that no request of these tests comes to."""


def app(lacking: str = "") -> Starlette:
    counters = Counters()
    gate = Gate(Keys(ServerSettings(keys=KEYS)), Throttle(100), (), counters)
    sql: Any = SimpleNamespace(lags=dict)
    tables = TableRoutes(NOBODYS, NOBODYS, NOBODYS, NOBODYS, sql, NOBODYS)
    board = BoardRoutes(NOBODYS, NOBODYS, NOBODYS, NOBODYS, NOBODYS)
    readiness: Any = SimpleNamespace(lacking=lacking, outage="", live="g7")
    reception: Any = SimpleNamespace(serve=None)
    routes = Routes(gate, Logins(Secret(ADMIN)), reception, tables, board, readiness, counters, Page())
    return routes.app((), cast(Any, None))


def ask(server: Starlette, path: str, method: str = "GET", key: str = "") -> tuple[int, Any]:
    """The status and the JSON that a request gets."""
    sent: list[MutableMapping[str, Any]] = []

    async def receive() -> MutableMapping[str, Any]:
        return {"type": "http.request", "body": b"[]"}

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    headers = [(b"authorization", f"Bearer {key}".encode())] if key else []
    scope = {"type": "http", "method": method, "path": path, "query_string": b"", "headers": headers, "client": None}
    asyncio.run(server(scope, receive, send))
    return sent[0]["status"], orjson.loads(sent[1]["body"])


PATHS = [
    (route.path.format(name="users_ui"), method)
    for route in app().routes
    if isinstance(route, Route) and route.path.startswith("/api/") and route.path != "/api/login"
    for method in sorted((route.methods or set()) - {"HEAD"})
]
OF_ADMINS = ("/api/control", "/api/topics", "/api/preview")


@pytest.mark.parametrize(("path", "method"), PATHS)
def test_everything_under_api_needs_a_key(path: str, method: str) -> None:
    assert ask(app(), path, method)[0] == 401
    status, answer = ask(app(), path, method, "another key")
    assert (status, answer["error"]["code"]) == (401, "unauthorized")


@pytest.mark.parametrize(("path", "method"), [each for each in PATHS if each[0] in OF_ADMINS])
def test_what_changes_the_board_needs_the_key_of_an_admin(path: str, method: str) -> None:
    status, answer = ask(app(), path, method, VIEWER)
    assert (status, answer["error"]["code"]) == (403, "forbidden")


def test_the_paths_are_those_that_are_known_here() -> None:
    assert len(PATHS) == 13
    assert set(OF_ADMINS) <= {path for path, _ in PATHS}


def test_an_admin_comes_to_what_was_asked_for() -> None:
    status, answer = ask(app(), "/api/control", "POST", ADMIN)
    assert (status, answer["error"]["code"]) == (400, "bad_message")


def test_login_and_probes_need_no_key() -> None:
    assert ask(app(), "/api/login", "POST")[0] == 400
    assert ask(app(), "/healthz")[1]["status"] == "ok"
    assert ask(app(), "/readyz") == (200, {"status": "ready", "generation": "g7"})
    status, answer = ask(app(lacking="expected every table"), "/readyz")
    assert (status, answer["error"]) == (503, {"code": "not_ready", "message": "expected every table"})


def test_every_error_has_one_shape() -> None:
    status, answer = ask(app(), "/healthz", "POST")
    assert (status, answer) == (405, {"error": {"code": "bad_method", "message": "Method Not Allowed"}})
    assert ask(app(), "/api/nothing")[1]["error"]["code"] == "not_found"
