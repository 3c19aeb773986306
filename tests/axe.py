"""What axe finds wrong with a page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from playwright.sync_api import Page

_AXE = Path(__file__).parents[1] / "web" / "node_modules" / "axe-core" / "axe.min.js"


def problems(page: Page) -> list[str]:
    """What keeps people out: what it is and where."""
    if page.evaluate("!window.axe"):
        page.evaluate(_AXE.read_text())
    # Otherwise it also describes, at length, each of the thousands of elements that are right.
    found: list[dict[str, Any]] = page.evaluate("axe.run({ resultTypes: ['violations'] })")["violations"]
    serious = [problem for problem in found if problem["impact"] in ("serious", "critical")]
    return [f"{problem['id']}: {problem['nodes'][0]['html'][:200]}" for problem in serious]
