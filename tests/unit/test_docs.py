"""The README names everything that a user can set, run or look at."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from liveboard.config import default_board, documented_keys
from liveboard.contract.tables import table_columns

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


@pytest.mark.parametrize("key", documented_keys())
def test_every_setting_is_in_the_readme(key: str) -> None:
    assert f"`{key}`" in README


def test_the_readme_has_no_setting_that_is_not_there() -> None:
    named = set(re.findall(r"`((?:kafka|spark|server|storage|control|board)(?:\.[a-z_<>]+)+)`", README))
    assert named - set(documented_keys()) == set()


def test_every_command_is_in_the_readme() -> None:
    text = subprocess.run(
        [sys.executable, "-m", "liveboard", "--help"], capture_output=True, text=True, check=True
    ).stdout
    commands = set(re.findall(r"^    ([a-z]+) ", text, re.MULTILINE))
    assert commands == set(re.findall(r"^\| `liveboard ([a-z]+)", README, re.MULTILINE))


def test_every_table_of_the_default_board_is_in_the_readme() -> None:
    assert [table for table in table_columns(default_board()) if f"`{table}`" not in README] == []


def test_every_dependency_has_its_reason() -> None:
    reasons = (ROOT / "ARCHITECTURE.md").read_text()
    named = [
        re.split(r"[=<>\[]", line)[0].strip()
        for file in ("requirements.in", "requirements-dev.in")
        for line in (ROOT / file).read_text().splitlines()
        if line.strip() and not line.startswith(("#", "-"))
    ]
    for package in [*sorted((ROOT / "web").glob("*/package.json")), ROOT / "web" / "package.json"]:
        document = json.loads(package.read_text())
        named += [*document.get("dependencies", {}), *document.get("devDependencies", {})]
    assert len(named) > 20
    assert [name for name in named if name not in reasons] == []
