"""How the server serves the page's files."""

from __future__ import annotations

import asyncio
import gzip
from pathlib import Path

import pytest
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match

from liveboard.serving.page import Page

INDEX = "<!doctype html>"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A built page, and a file beside it."""
    built = tmp_path / "built"
    built.mkdir()
    (built / "index.html").write_text(INDEX)
    (built / "main-ABCD1234.js").write_text("let a")
    (built / "favicon.svg").write_text("<svg/>")
    (tmp_path / "secret.txt").write_text("not for the world")
    return built


def get(
    folder: Path, path: str, accepted: str = "", host: str = "board.example.com:8443", ancestors: tuple[str, ...] = ()
) -> Response:
    """What a browser gets."""
    scope = {
        "type": "http",
        "path_params": {"path": path.lstrip("/")},
        "headers": [(b"accept-encoding", accepted.encode()), (b"host", host.encode())],
    }
    return asyncio.run(Page(folder, ancestors).file(Request(scope)))


@pytest.mark.parametrize("path", ["/", "/table/final_ui", "/index.html"])
def test_deep_links_are_the_page_and_never_cached(folder: Path, path: str) -> None:
    answer = get(folder, path)
    assert (answer.status_code, answer.body) == (200, INDEX.encode())
    assert answer.headers["cache-control"] == "no-cache"
    assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]


@pytest.mark.parametrize(
    ("host", "sockets"),
    [
        ("board.example.com:8443", " ws://board.example.com:8443 wss://board.example.com:8443"),
        ("[::1]:8080", " ws://[::1]:8080 wss://[::1]:8080"),
        ("evil; script-src *", ""),
        ("a b", ""),
        ("", ""),
    ],
)
def test_the_page_may_connect_to_its_server_only(folder: Path, host: str, sockets: str) -> None:
    policy = get(folder, "/", host=host).headers["content-security-policy"]
    assert f"; connect-src 'self'{sockets}; " in policy
    assert policy.startswith("default-src 'self'; style-src ")
    assert "script-src" not in policy


@pytest.mark.parametrize(
    ("path", "ancestors", "policy"),
    [
        ("/embed/table/users_ui", ("https://intranet.example.com",), "https://intranet.example.com"),
        (
            "/embed/board",
            ("https://a.example.com", "https://b.example.com"),
            "https://a.example.com https://b.example.com",
        ),
        ("/embed/board", (), "'none'"),
        ("/table/users_ui", ("https://intranet.example.com",), "'none'"),
        ("/", ("https://intranet.example.com",), "'none'"),
    ],
)
def test_other_sites_frame_what_is_made_for_it_and_only_if_they_are_named(
    folder: Path, path: str, ancestors: tuple[str, ...], policy: str
) -> None:
    found = get(folder, path, ancestors=ancestors).headers["content-security-policy"]
    assert found.endswith(f"; frame-ancestors {policy}")


def test_hashed_files_are_cached_for_ever_and_compressed(folder: Path) -> None:
    answer = get(folder, "/main-ABCD1234.js", "gzip, br")
    assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert answer.headers["content-encoding"] == "gzip"
    assert gzip.decompress(bytes(answer.body)) == b"let a"


def test_other_files_are_asked_for_again(folder: Path) -> None:
    answer = get(folder, "/favicon.svg")
    assert answer.headers["cache-control"] == "no-cache"
    assert answer.media_type == "image/svg+xml"


@pytest.mark.parametrize("path", ["/gone-ABCD1234.js", "/../secret.txt"])
def test_what_is_not_there_is_not_the_page(folder: Path, path: str) -> None:
    with pytest.raises(HTTPException) as caught:
        get(folder, path)
    assert caught.value.status_code == 404


@pytest.mark.parametrize("path", ["/api", "/api/nothing", "/metrics/x", "/ws/", "/healthz"])
def test_the_paths_of_the_server_are_not_the_pages(folder: Path, path: str) -> None:
    assert Page(folder).route().matches({"type": "http", "method": "GET", "path": path})[0] is Match.NONE


@pytest.mark.parametrize("path", ["", "*", "table"])
def test_a_path_without_a_slash_is_nobodys(folder: Path, path: str) -> None:
    assert Page(folder).route().matches({"type": "http", "method": "GET", "path": path})[0] is Match.NONE


def test_a_page_that_is_not_built_says_so(tmp_path: Path) -> None:
    answer = get(tmp_path / "nothing", "/")
    assert answer.status_code == 503
    assert b"make setup" in bytes(answer.body)
