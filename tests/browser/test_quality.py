"""What the page costs, and who can use it."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest
from live import KEY, Running
from looking import log_in
from playwright.sync_api import Browser, BrowserContext, Page, expect

from liveboard import access
from liveboard.access import Access

pytestmark = pytest.mark.integration

WEB = Path(__file__).parents[2] / "web"
MAX_BUNDLE_BYTES = 350_000
MOUNTS = 200


def metrics(page: Page) -> dict[str, float]:
    """What the browser counts, after a collection of garbage."""
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.collectGarbage")
    session.send("Performance.enable")
    found: list[dict[str, Any]] = session.send("Performance.getMetrics")["metrics"]
    session.detach()
    return {metric["name"]: metric["value"] for metric in found}


def problems(page: Page) -> list[dict[str, Any]]:
    """What axe finds."""
    page.evaluate((WEB / "node_modules" / "axe-core" / "axe.min.js").read_text())
    found: list[dict[str, Any]] = page.evaluate("axe.run()")["violations"]
    return found


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("path", ["/", "/table/final_ui"])
def test_nothing_serious_keeps_people_out(browser: Browser, running: Running, scheme: Any, path: str) -> None:
    page = browser.new_page(color_scheme=scheme)
    page.goto(f"http://127.0.0.1:{running.port}{path}")
    page.get_by_label("Key").wait_for()
    found = problems(page)
    log_in(page, running, path)
    page.locator(".ag-row").first.wait_for()
    if path == "/":
        page.locator("summary").click()
    found += problems(page)
    page.close()
    serious = [problem for problem in found if problem["impact"] in ("serious", "critical")]
    assert [(problem["id"], problem["nodes"][0]["html"][:200]) for problem in serious] == []


def test_a_login_link_leads_to_the_rows(context: BrowserContext, running: Running) -> None:
    page = context.new_page()
    page.goto(access.login_link(Access(f"http://127.0.0.1:{running.port}", KEY)))
    page.locator(".ag-row").first.wait_for()


def test_the_bundle_is_small() -> None:
    scripts = (WEB / "app" / "dist").glob("*.js")
    index = (WEB / "app" / "dist" / "index.html").read_text()
    first = [script for script in scripts if script.name in index]
    assert first
    assert sum(len(gzip.compress(script.read_bytes())) for script in first) < MAX_BUNDLE_BYTES


def test_nothing_is_left_behind(page: Page, running: Running) -> None:
    log_in(page, running)

    def mount(times: int) -> None:
        for _ in range(times):
            page.get_by_label("Open users_ui alone").click()
            page.get_by_label("Back to the board").click()
        expect(page.locator("app-live-table")).to_have_count(2)
        page.locator(".ag-row").first.wait_for()

    mount(10)
    before = metrics(page)
    # The board has two tables, a page of its own one.
    mount(MOUNTS // 3)
    after = metrics(page)
    assert after["JSEventListeners"] < before["JSEventListeners"] * 1.2 + 50
    assert after["Nodes"] < before["Nodes"] * 1.2 + 500
    assert after["JSHeapUsedSize"] < before["JSHeapUsedSize"] * 1.3 + 2_000_000
