"""What the page shows to keys that may less, over TLS."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from certificates import Authority
from live import KEY, Board, Running, serving
from playwright.sync_api import Browser, BrowserContext, Page, expect

from liveboard.config import KeySettings, Secret

pytestmark = pytest.mark.integration

KEYS = {
    "wall": KeySettings(name="wall", role="viewer", key=Secret("the wall's key")),
    "desk": KeySettings(name="desk", role="viewer", key=Secret("the desk's key"), tables=("final_ui",)),
}


@pytest.fixture
def running(board: Board, tmp_path: Path) -> Iterator[Running]:
    """A server with several keys and a certificate that no browser knows."""
    made = Authority(tmp_path, "authority").issue("server")
    files = {"tls_cert_file": str(made.cert), "tls_key_file": str(made.key)}
    with serving(board.bootstrap, keys=KEYS, **files) as running:
        running.bound(str(board.live))
        yield running


def test_b30_only_an_admin_is_shown_the_way_to_swap(running: Running, board: Board, browser: Browser) -> None:
    contexts: list[BrowserContext] = []

    def opened(key: str) -> tuple[Page, list[str]]:
        # The tabs of one browser have one session.
        contexts.append(browser.new_context(ignore_https_errors=True))
        contexts[-1].set_default_timeout(20_000)
        page, said = contexts[-1].new_page(), []
        page.on("console", lambda message: said.append(message.text) if message.type == "error" else None)
        page.goto(running.server.address)
        page.get_by_label("Key").fill(key)
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name="final_ui", exact=True)).to_be_visible()
        expect(page.locator("app-live-table .state").first).to_have_text("live")
        return page, said

    for key, forms in ((KEY, 1), ("the wall's key", 0)):
        page, said = opened(key)
        panel = page.get_by_role("region", name="Control panel")
        panel.locator("summary").click()
        expect(panel.locator("summary")).to_contain_text(f"users: users-{board.live}")
        expect(panel.locator("form")).to_have_count(forms)
        expect(page.get_by_role("heading", name="users_ui", exact=True)).to_be_visible()
        assert said == []
    page, said = opened("the desk's key")
    expect(page.locator("app-live-table")).to_have_count(1)
    expect(page.get_by_role("region", name="Control panel").locator("summary")).to_have_count(0)
    assert said == []
    for context in contexts:
        context.close()
