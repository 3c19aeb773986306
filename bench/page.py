"""Measures the page in Chromium, over a server of its own: what loads, how soon rows are there, what live rows cost.

What was measured is kept in bench/page.json, with the load that the machine had before.
"""

from __future__ import annotations

import argparse
import gzip
import shlex
import sys
import tempfile
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, CDPSession, Page, Response, sync_playwright
from report import Result, as_json, keep, machine, median, show
from serving import KEY, Stage, joined_row

from liveboard import access
from liveboard.access import Access
from liveboard.kafka.broker import Broker

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import chromium

_HERE = Path(__file__).parent
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


def _opened(browser: Browser, stage: Stage, loaded: list[Response]) -> Page:
    """The board in a browser without a past."""
    page = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
    page.add_init_script(_NOTE_FIRST_ROW)
    page.on("response", lambda response: loaded.append(response))
    page.goto(access.login_link(Access(f"http://127.0.0.1:{stage.port}", KEY)))
    while not page.evaluate("window.firstRowAt"):
        page.wait_for_timeout(20)
    return page


def first_rows(browser: Browser, stage: Stage) -> list[Result]:
    """From the navigation to the first rows in the grid, nothing cached, by a login link."""
    loaded: list[Response] = []
    page = _opened(browser, stage, loaded)
    seconds = page.evaluate("window.firstRowAt") / 1000
    scripts = [response.body() for response in loaded if response.url.endswith(".js")]
    page.context.close()
    return [
        Result("first rows after navigation", seconds, "s", 1.5),
        Result("scripts until then, gzip", sum(len(gzip.compress(each)) for each in scripts) / 1000, "kB", 350),
    ]


def live_rows(browser: Browser, stage: Stage, seconds: float) -> list[Result]:
    """What the browser's main thread does while rows in view change, cells flashing."""
    page = _opened(browser, stage, [])
    stopping = threading.Event()

    def change() -> None:
        number = 0
        while not stopping.wait(1 / _CHANGES_A_SECOND):
            at = number % _ROWS_IN_VIEW
            stage.producer.produce(stage.topic, joined_row(at, _now(), f" {number}"), f"0-{at}")
            stage.producer.poll(0)
            number += 1
            if number % _CHANGES_A_SECOND == 0:
                stage.announce()

    changing = threading.Thread(target=change)
    changing.start()
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")
    page.wait_for_timeout(_SETTLE_S * 1000)
    seen, before, begun = _newest_mark(page), _busy(session), time.perf_counter()
    page.wait_for_timeout(seconds * 1000)
    after, elapsed = _busy(session), time.perf_counter() - begun
    seen = _newest_mark(page) - seen
    stopping.set()
    changing.join()
    page.context.close()
    share = {name: (after[name] - before[name]) / elapsed * 100 for name in after}
    rate = f"{_CHANGES_A_SECOND} changes/s in view"
    return [
        Result("how fast the number of the newest change on the screen grows", seen / elapsed, "changes/s"),
        Result(f"scripting at {rate}", share["ScriptDuration"], "% of a core", 5),
        Result(f"main thread at {rate}, painting included", share["TaskDuration"], "% of a core"),
    ]


def _busy(session: CDPSession) -> dict[str, float]:
    """Seconds of work since the measuring began."""
    found: list[dict[str, Any]] = session.send("Performance.getMetrics")["metrics"]
    return {each["name"]: each["value"] for each in found if each["name"] in ("ScriptDuration", "TaskDuration")}


def _newest_mark(page: Page) -> int:
    """The number of the last change that is on the screen."""
    names = page.locator('.ag-row [col-id="name"]').all_inner_texts()
    return max(int(name.split()[-1]) for name in names if name.split()[-1].isdigit())


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def main() -> int:
    """Runs all measures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--output", type=Path, default=_HERE / "page.json", metavar="FILE")
    options = parser.parse_args()
    about = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": shlex.join(sys.argv),
        "machine": machine(),
        "sizes": {"rows": options.rows, "rounds": options.rounds, "seconds": options.seconds},
    }
    with tempfile.TemporaryDirectory() as directory, Broker(Path(directory)) as broker:
        stage = Stage(broker.bootstrap_servers, options.rows)
        stage.start()
        try:
            while stage.server.hub.catalogue.live is None:
                time.sleep(0.01)
            with sync_playwright() as playwright:
                browser = chromium.launch(playwright)
                about["browser"] = browser.version
                results = median([first_rows(browser, stage) for _ in range(options.rounds)])
                results += live_rows(browser, stage, options.seconds)
                browser.close()
        finally:
            stage.stop()
    keep(options.output, {"page": {**about, "results": list(map(as_json, results))}})
    show(results, "liveboard page")
    print(f"kept in {options.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
