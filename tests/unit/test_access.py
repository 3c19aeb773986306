"""Where `liveboard up` lets people in: a free port, and a key that lasts as long as the storage."""

from __future__ import annotations

import socket
import stat
from pathlib import Path

import pytest

from liveboard.commands import access
from liveboard.config import Secret, ServerSettings, Settings, StorageSettings
from liveboard.contract.errors import LiveboardError


def settings(directory: Path, **server: object) -> Settings:
    return Settings(
        server=ServerSettings(**{"port": 0, **server}),  # type: ignore[arg-type]
        storage=StorageSettings(dir=directory),
    )


def test_the_key_that_up_makes_lasts_as_long_as_its_storage(tmp_path: Path) -> None:
    first, _ = access.choose(settings(tmp_path / "one"))
    assert access.choose(settings(tmp_path / "one"))[0].key == first.key
    assert access.choose(settings(tmp_path / "other"))[0].key != first.key
    assert stat.S_IMODE((tmp_path / "one" / "key").stat().st_mode) == 0o600


def test_a_configured_key_is_kept_nowhere_by_choosing_it(tmp_path: Path) -> None:
    chosen, _ = access.choose(settings(tmp_path, psk=Secret("a key of sixteen characters")))
    assert chosen.key == "a key of sixteen characters"
    assert list(tmp_path.iterdir()) == []


def test_a_port_that_somebody_else_has_ends_it_with_a_sentence(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(LiveboardError, match=f"server.port: expected a free port {port} of 127.0.0.1, found: "):
            access.choose(settings(tmp_path, port=port))
