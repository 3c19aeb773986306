"""A schema registry in the hands of a test: a real HTTP server of the usual API, with its content in memory."""

from __future__ import annotations

import base64
import json
import ssl
import threading
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, NamedTuple, Self

Schema = Mapping[str, Any] | Sequence[Any] | str


class _Version(NamedTuple):
    id: int
    schema: str
    kind: str
    references: Sequence[Mapping[str, Any]]


class TestRegistry:
    """Runs while it is entered; `close` and `open` take it away and bring it back at the same address."""

    __test__ = False

    def __init__(self, login: str = "", token: str = "", tls: ssl.SSLContext | None = None) -> None:
        self.subjects: dict[str, list[_Version]] = {}
        self.asked: list[str] = []
        """The paths that were asked for."""
        self._expected = f"Bearer {token}" if token else ""
        if login:
            self._expected = f"Basic {base64.b64encode(login.encode()).decode()}"
        self._tls = tls
        self._port = 0
        self._last_id = 0
        self._server: ThreadingHTTPServer | None = None

    @property
    def url(self) -> str:
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self._port}"

    def register(
        self, subject: str, schema: Schema, *, kind: str = "AVRO", references: Sequence[Mapping[str, Any]] = ()
    ) -> int:
        """A new version of the subject; returns its id."""
        self._last_id += 1
        versions = self.subjects.setdefault(subject, [])
        versions.append(_Version(self._last_id, json.dumps(schema), kind, references))
        return self._last_id

    def answer(self, path: str) -> Any:
        """What is said to a question; a LookupError with the code of the API where there is no such thing."""
        match path.strip("/").split("/"):
            case ["subjects"]:
                return list(self.subjects)
            case ["subjects", subject, "versions"]:
                return list(range(1, len(self._versions(subject)) + 1))
            case ["subjects", subject, "versions", number]:
                versions = self._versions(subject)
                if not number.isdigit() or not 1 <= int(number) <= len(versions):
                    raise LookupError(40402)
                return {"subject": subject, "version": int(number), **_described(versions[int(number) - 1])}
            case ["schemas", "ids", wanted]:
                for versions in self.subjects.values():
                    for version in versions:
                        if str(version.id) == wanted:
                            described = _described(version)
                            del described["id"]
                            return described
                raise LookupError(40403)
        raise LookupError(404)

    def _versions(self, subject: str) -> list[_Version]:
        if subject not in self.subjects:
            raise LookupError(40401)
        return self.subjects[subject]

    def open(self) -> None:
        registry = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                registry.asked.append(self.path)
                if registry._expected and self.headers.get("Authorization") != registry._expected:
                    return self._say(401, {"error_code": 401, "message": "Unauthorized"})
                try:
                    return self._say(200, registry.answer(self.path))
                except LookupError as error:
                    return self._say(404, {"error_code": error.args[0], "message": "not found"})

            def _say(self, code: int, content: Any) -> None:
                body = json.dumps(content).encode()
                self.send_response(code)
                self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", self._port), Handler)
        self._port = self._server.server_address[1]
        if self._tls:
            self._server.socket = self._tls.wrap_socket(self._server.socket, server_side=True)
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def close(self) -> None:
        if self._server:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def _described(version: _Version) -> dict[str, Any]:
    described: dict[str, Any] = {"id": version.id, "schema": version.schema}
    # As the real ones do, it says so only of those that are not Avro, or that refer to others.
    if version.kind != "AVRO":
        described["schemaType"] = version.kind
    if version.references:
        described["references"] = version.references
    return described
