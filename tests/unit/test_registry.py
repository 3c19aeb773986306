"""The client of the schema registry, against a real server of its API."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from certificates import Authority
from ports import closed_port
from registry import TestRegistry

from liveboard.config import RegistrySettings, Secret
from liveboard.kafka.registry import Registry, RegistryUnavailable

LONG, TEXT = "long", "string"


@pytest.fixture
def server() -> Iterator[TestRegistry]:
    with TestRegistry() as running:
        yield running


def client(server: TestRegistry, path: str = "", **settings: str) -> Registry:
    login = {key: Secret(value) if key in ("password", "token") else value for key, value in settings.items()}
    return Registry(RegistrySettings(url=server.url + path, **login))  # type: ignore[arg-type]


def problem(registry: Registry) -> str:
    with pytest.raises(RegistryUnavailable) as caught:
        registry.versions("orders-value")
    return str(caught.value)


def test_all_versions_of_a_subject_and_any_schema_by_its_id(server: TestRegistry) -> None:
    first, other = server.register("orders-value", LONG), server.register("a/b c", TEXT, kind="PROTOBUF")
    second = server.register("orders-value", TEXT)
    registry = client(server, "/")
    versions = registry.versions("orders-value")
    assert {schema_id: found.schema for schema_id, found in versions.items()} == {first: '"long"', second: '"string"'}
    assert registry.schema(second) == versions[second]
    assert {"/subjects/orders-value/versions", "/schemas/ids/3"} <= set(server.asked)
    found = registry.schema(other)
    assert found
    assert found.kind == "PROTOBUF"
    assert (registry.count("orders-value"), registry.count("items-value")) == (2, 0)


def test_what_the_registry_does_not_have_is_an_answer(server: TestRegistry) -> None:
    assert client(server).versions("orders-value") == {}
    assert client(server).schema(77) is None


def test_schemas_that_a_schema_refers_to_come_with_it_each_after_those_that_it_refers_to(server: TestRegistry) -> None:
    server.register("c", {"type": "fixed", "name": "C", "size": 1})
    server.register("b", {"type": "array", "items": "C"}, references=[{"name": "C", "subject": "c", "version": 1}])
    named = [{"name": "B", "subject": "b", "version": 1}, {"name": "C", "subject": "c", "version": 1}]
    schema_id = server.register("orders-value", "C", references=named)
    found = client(server).schema(schema_id)
    assert found
    assert [text[:20] for text in found.references] == ['{"type": "fixed", "n', '{"type": "array", "i']


def test_a_login_is_sent_and_a_wrong_one_named_without_its_secret() -> None:
    with TestRegistry(login="ada:geheim") as server:
        server.register("orders-value", LONG)
        assert client(server, username="ada", password="geheim").count("orders-value") == 1
        wrong = problem(client(server, username="ada", password="falsch"))
        assert "registry.username, registry.password" in wrong
        assert "'ada' refused (401)" in wrong
        assert "falsch" not in wrong
        assert "found none; set them" in problem(client(server))
    with TestRegistry(token="geheim") as server:
        server.register("orders-value", LONG)
        assert client(server, token="geheim").count("orders-value") == 1
        wrong = problem(client(server, token="falsch"))
        assert wrong.startswith("registry.token: expected a token that")
        assert "falsch" not in wrong


def test_tls_with_an_authority_of_ones_own(tmp_path: Path) -> None:
    authority = Authority(tmp_path, "ours")
    certificate = authority.issue("registry")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate.cert, certificate.key)
    with TestRegistry(tls=context) as server:
        assert client(server, ca_file=str(authority.ca)).versions("orders-value") == {}
        assert problem(client(server)).startswith("registry.ca_file: expected the authority that signed")
        assert "found no file nowhere.pem" in problem(client(server, ca_file="nowhere.pem"))


def test_a_registry_that_is_not_there_is_told_from_one_that_lacks_something(server: TestRegistry) -> None:
    assert "found 404 from something that is none" in problem(client(server, "/elsewhere"))
    server.close()
    assert "see that it runs, or set another address" in problem(client(server))
    nowhere = Registry(RegistrySettings(url=f"http://127.0.0.1:{closed_port()}"))
    assert "found no answer (" in problem(nowhere)


@pytest.mark.parametrize(
    ("code", "body", "found"),
    [
        (200, b"<html>", "found an answer that is not JSON"),
        (200, b"[7]", "found an answer about orders-value 7 without id and schema"),
        (302, b"", "found a redirect to http://else.example/"),
        (500, b"{}", "found 500; see that it runs"),
    ],
)
def test_whatever_else_answers_is_named(code: int, body: bytes, found: str) -> None:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(code)
            self.send_header("Location", "http://else.example/")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        said = problem(Registry(RegistrySettings(url=f"http://127.0.0.1:{server.server_address[1]}")))
        server.shutdown()
    assert found in said
