"""A configuration file, in an empty working directory."""

from __future__ import annotations

from pathlib import Path

import pytest
from configured import File


@pytest.fixture
def file(tmp_path: Path) -> File:
    return File(tmp_path / "some.toml")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
