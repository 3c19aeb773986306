"""From produce() to the cell of a real browser: liveboard's page, and Deephaven's API with the same grid."""

from __future__ import annotations

import functools
import http.server
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import chromium
from peer.events import shown_at
from peer.systems import KEY, Deephaven, Liveboard, System, TunedDeephaven, javascript_api
from peer.watching import showing
from playwright.sync_api import Page, sync_playwright
from processes import say
from report import Figure, percentile
from stage import PATIENCE_S, Stage

from liveboard.commands import access
from liveboard.commands.access import Access
from liveboard.contract.errors import LiveboardError

_HERE = Path(__file__).parent
_ROOT = _HERE.parents[1]

_RATE = 50
_ROWS = 10
"""The rows that change, so that all of them are on the screen."""
_SETTLE_S = 4.0
_PERCENTILES = {"p50": 50.0, "p95": 95.0, "p99": 99.0}
# Cells that have changed, with the time of the frame that shows them.
_WATCH = """
() => {
  window.seen = [];
  const shown = new Map();
  const look = () => {
    for (const cell of document.querySelectorAll('.ag-cell[col-id="accountType"]')) {
      const row = cell.closest('.ag-row').getAttribute('row-id');
      const text = cell.textContent.trim();
      if (shown.get(row) !== text) {
        shown.set(row, text);
        requestAnimationFrame(() => window.seen.push([text, (performance.timeOrigin + performance.now()) * 1e6]));
      }
    }
  };
  new MutationObserver(look).observe(document.body, { subtree: true, childList: true, characterData: true });
}
"""


def browser(stage: Stage) -> list[Figure]:
    """The same events on the screen of Chromium, both systems in turn."""
    found = {kind.name: _measure(stage, kind) for kind in (Liveboard, Deephaven, TunedDeephaven)}
    return [
        Figure(
            f"browser, {_RATE}/s, {label}, against {peer}",
            "ms",
            percentile(found[Liveboard.name], percent),
            percentile(found[peer], percent),
        )
        for peer in (Deephaven.name, TunedDeephaven.name)
        for label, percent in _PERCENTILES.items()
    ]


def _measure(stage: Stage, kind: type[System]) -> list[float]:
    """In milliseconds."""
    users = stage.sizes.latency_users
    with showing(kind, stage, users, users, _ROWS) as watched, sync_playwright() as playwright:
        watched.viewers.order("close")
        window = chromium.launch(playwright)
        page = window.new_page(viewport={"width": 1440, "height": 900})
        with _opened(watched.system, page):
            page.locator(".ag-cell", has_text=str(watched.load.mark)).first.wait_for(timeout=PATIENCE_S * 1000)
            page.evaluate(_WATCH)
            say(f"browser, {kind.name}: {_RATE} events/s")
            for first, seconds in ((0, stage.sizes.warm_up_s), (1_000_000, stage.sizes.seconds)):
                page.evaluate("() => { window.seen = []; }")
                count = _RATE * seconds
                sent = watched.send(first, _RATE, count, time.time_ns)
                time.sleep(_SETTLE_S)
            times = shown_at(page.evaluate("() => window.seen"), first, _ROWS)
        window.close()
    if missing := sum(first + n not in times for n in range(count)):
        raise LiveboardError(f"{kind.name}: {missing} of {count} events were never seen in the browser")
    return [(times[first + n] - sent.times_ns[n]) / 1e6 for n in range(count)]


@contextmanager
def _opened(system: System, page: Page) -> Iterator[None]:
    """The page of the system, with the table."""
    if isinstance(system, Liveboard):
        page.goto(access.login_link(Access(system.url, KEY)))
        page.locator(".ag-row").first.wait_for()
        page.goto(f"{system.url}/table/final_ui")
        # Those that change are the oldest, as in Deephaven's table.
        page.locator("[aria-pressed=true]", has_text="Newest first").click()
        yield
        return
    folder = system.directory / "page"
    folder.mkdir()
    javascript_api(folder / "dh-core.js")
    shutil.copy(_HERE / "page.html", folder)
    shutil.copy(_ROOT / "web/node_modules/ag-grid-community/dist/ag-grid-community.min.js", folder)
    handler = functools.partial(_Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        interval = "".join(system.viewer_settings)
        page.goto(f"http://127.0.0.1:{server.server_port}/page.html?server={system.url}&interval={interval}")
        yield
        server.shutdown()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""
