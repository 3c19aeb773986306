"""What the page costs, and who can use it."""

from __future__ import annotations

import gzip
import math
from pathlib import Path
from typing import Any

import pytest
from axe import problems
from live import KEY, Running
from looking import expect_first, log_in, table
from playwright.sync_api import Browser, BrowserContext, Page, expect

from liveboard.commands import access
from liveboard.commands.access import Access

pytestmark = pytest.mark.integration

WEB = Path(__file__).parents[2] / "web"
MAX_BUNDLE_BYTES = 450_000
MOUNTS = 90
# Whatever a grid leaves behind is more than this: it has dozens of listeners, hundreds of nodes and 300 rows. Of the
# heap, some 20 kB are the browser's own: code that it has compiled, and answers that it remembers for its debugger.
MOST_PER_MOUNT = {"JSEventListeners": 0.5, "Nodes": 5, "JSHeapUsedSize": 40_000}


def metrics(page: Page) -> dict[str, float]:
    """What the browser counts, after a collection of garbage."""
    session = page.context.new_cdp_session(page)
    for _ in range(2):
        # What the first one finds only weakly held goes with the second.
        session.send("HeapProfiler.collectGarbage")
    session.send("Performance.enable")
    found: list[dict[str, Any]] = session.send("Performance.getMetrics")["metrics"]
    session.detach()
    return {metric["name"]: metric["value"] for metric in found}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_serious_keeps_people_out(browser: Browser, running: Running, scheme: Any) -> None:
    page = browser.new_page(color_scheme=scheme)
    found: dict[str, list[str]] = {}
    page.goto(f"http://127.0.0.1:{running.port}/")
    page.get_by_label("Key").wait_for()
    found["login"] = problems(page)
    log_in(page, running)
    page.locator(".ag-row").first.wait_for()
    found["board"] = problems(page)
    page.locator("summary").click()
    page.get_by_role("button", name="Preview").click()
    page.get_by_role("button", name="Swap").wait_for()
    found["control panel"] = problems(page)
    page.get_by_label("Open final_ui alone").click()
    grid = table(page, "final_ui")
    expect_first(grid, "userId", ["u999"])
    found["one table"] = problems(page)
    grid.locator(".ag-cell").first.click()
    page.get_by_role("complementary").locator("dl").wait_for()
    found["row"] = problems(page)
    page.get_by_role("button", name="Close the row").click()
    grid.get_by_role("button", name="Columns").click()
    page.get_by_role("checkbox", name="age").wait_for()
    found["columns"] = problems(page)
    page.get_by_role("button", name="Format of age").click()
    page.get_by_role("button", name="Add a rule").click()
    page.get_by_label("When").wait_for()
    found["format"] = problems(page)
    page.keyboard.press("Escape")
    grid.get_by_role("button", name="Export").click()
    page.get_by_role("button", name="Parquet").wait_for()
    found["export"] = problems(page)
    page.keyboard.press("Escape")
    for column in ("name", "age", "ts"):
        grid.locator(f'.ag-header-cell[col-id="{column}"] .ag-header-cell-filter-button').click()
        page.get_by_role("combobox", name="Filtering operator").wait_for()
        found[f"filter of {column}"] = problems(page)
        page.keyboard.press("Escape")
    grid.get_by_role("button", name="Chart").click()
    page.get_by_role("img", name="Distribution of age").wait_for()
    found["chart"] = problems(page)
    page.close()
    assert {place: each for place, each in found.items() if each} == {}


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
    mount(math.ceil(MOUNTS / 3))
    after = metrics(page)
    print({name: (before[name], after[name]) for name in MOST_PER_MOUNT})
    grown = {name: (after[name] - before[name]) / MOUNTS for name in MOST_PER_MOUNT}
    assert {name: each for name, each in grown.items() if each > MOST_PER_MOUNT[name]} == {}
