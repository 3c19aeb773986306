"""The page in Chromium, over a server of its own: what loads, how soon rows are there, what live rows cost."""

from __future__ import annotations

import gzip
import time
from typing import Any

import chromium
from playwright.sync_api import Browser, CDPSession, Page, Response, sync_playwright
from processes import repeating
from report import Figure, Target
from serving import KEY, Served, fill
from stage import Extra, Stage, Suite
from wheel import wheel

from liveboard.commands import access
from liveboard.commands.access import Access

_CHANGES_A_SECOND = 50
_ROWS_IN_VIEW = 6
_SETTLE_S = 3.0
# When the first row is painted, in milliseconds since the navigation; a frame later at most.
_NOTE_FIRST_ROW = """
const look = () => {
    if (document.querySelector('.ag-row .ag-cell-value, .ag-row .ag-cell')) window.firstRowAt = performance.now();
    else requestAnimationFrame(look);
};
look();
"""


def page(stage: Stage) -> tuple[list[Figure], Extra]:
    """The first rows, then live ones."""
    rows = stage.sizes.page_rows
    fill(stage, rows)
    with Served(stage, rows) as served, sync_playwright() as playwright:
        served.await_rows()
        browser = chromium.launch(playwright)
        figures = [*first_rows(browser, served), *live_rows(browser, served, rows, stage.sizes.seconds)]
        about = {"browser": browser.version}
        browser.close()
    return figures, about


def _opened(browser: Browser, served: Served, loaded: list[Response]) -> Page:
    """The board in a browser without a past."""
    page = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
    page.add_init_script(_NOTE_FIRST_ROW)
    page.on("response", lambda response: loaded.append(response))
    page.goto(access.login_link(Access(f"http://127.0.0.1:{served.port}", KEY)))
    while not page.evaluate("window.firstRowAt"):
        page.wait_for_timeout(20)
    return page


def first_rows(browser: Browser, served: Served) -> list[Figure]:
    """From the navigation to the first rows in the grid, nothing cached, by a login link."""
    loaded: list[Response] = []
    page = _opened(browser, served, loaded)
    seconds = page.evaluate("window.firstRowAt") / 1000
    size = sum(len(gzip.compress(response.body())) for response in loaded if response.url.endswith(".js"))
    page.context.close()
    return [
        Figure("first rows after navigation", "s", seconds, target=Target(1.5)),
        Figure("scripts until then, gzip", "kB", size / 1000, target=Target(450)),
    ]


def live_rows(browser: Browser, served: Served, rows: int, seconds: float) -> list[Figure]:
    """What the browser's main thread does while rows in view change, cells flashing."""
    page = _opened(browser, served, [])

    def change(number: int) -> None:
        served.change(rows - 1 - number % _ROWS_IN_VIEW, number, f" {number}")
        if number % _CHANGES_A_SECOND == 0:
            served.announce()

    with repeating(1 / _CHANGES_A_SECOND, change):
        session = page.context.new_cdp_session(page)
        session.send("Performance.enable")
        page.wait_for_timeout(_SETTLE_S * 1000)
        seen, before, begun = _newest_mark(page), _busy(session), time.perf_counter()
        page.wait_for_timeout(seconds * 1000)
        after, elapsed = _busy(session), time.perf_counter() - begun
        seen = _newest_mark(page) - seen
    page.context.close()
    share = {name: (after[name] - before[name]) / elapsed * 100 for name in after}
    rate = f"{_CHANGES_A_SECOND} changes/s in view"
    return [
        Figure("how fast the number of the newest change on the screen grows", "changes/s", seen / elapsed),
        Figure(f"scripting at {rate}", "% of a core", share["ScriptDuration"], target=Target(5)),
        Figure(f"main thread at {rate}, painting included", "% of a core", share["TaskDuration"]),
    ]


def _busy(session: CDPSession) -> dict[str, float]:
    """Seconds of work since the measuring began."""
    found: list[dict[str, Any]] = session.send("Performance.getMetrics")["metrics"]
    return {each["name"]: each["value"] for each in found if each["name"] in ("ScriptDuration", "TaskDuration")}


def _newest_mark(page: Page) -> int:
    """The number of the last change that is on the screen."""
    names = page.locator('.ag-row [col-id="name"]').all_inner_texts()
    return max(int(name.split()[-1]) for name in names if name.split()[-1].isdigit())


SUITE = Suite(
    title="the page of liveboard",
    file="page.json",
    measures={"page": page, "wheel": wheel},
    seconds=20,
    rounds=5,
    once=("wheel",),
)
