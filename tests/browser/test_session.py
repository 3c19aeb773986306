"""The session of a browser: shared between its tabs, kept nowhere else; and the page in a frame of another site."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from live import KEY, Board, Running, serving
from looking import expect_first, log_in, table
from playwright.sync_api import BrowserContext, Page, expect

from liveboard.commands import access
from liveboard.commands.access import Access

pytestmark = pytest.mark.integration


def test_b31_a_second_tab_is_logged_in_and_out_with_the_first(
    page: Page, context: BrowserContext, running: Running
) -> None:
    log_in(page, running)
    expect_first(table(page), "userId", ["u999"])
    other = context.new_page()
    other.goto(f"http://127.0.0.1:{running.port}/table/users_ui")
    expect_first(table(other), "userId", ["u999"])
    # Only in memory and in the storage of each tab.
    assert KEY not in str(other.evaluate("JSON.stringify(localStorage)"))
    other.get_by_role("button", name="Log out").click()
    expect(page.get_by_label("Key")).to_be_visible()
    page.get_by_label("Key").fill(KEY)
    page.keyboard.press("Enter")
    expect_first(table(other), "userId", ["u999"])


def test_b31_a_login_link_that_is_pasted_into_an_open_tab_works(page: Page, running: Running) -> None:
    address = f"http://127.0.0.1:{running.port}"
    page.goto(address)
    page.get_by_label("Key").wait_for()
    # The same page with another fragment: nothing is loaded anew.
    page.goto(access.login_link(Access(address, KEY)))
    expect_first(table(page), "userId", ["u999"])
    assert "login" not in page.url


@pytest.fixture
def site() -> Iterator[ThreadingHTTPServer]:
    """Another web site, which shows whatever its address names in a frame."""

    class Site(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(f'<iframe src="{self.path[1:]}" width="900" height="600"></iframe>'.encode())

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Site)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def test_another_site_shows_a_table_only_if_it_may(
    page: Page, board: Board, site: ThreadingHTTPServer, complaints: list[str]
) -> None:
    # What the browser says of frames that it does not show, and of a site without an icon.
    complaints += ["frame-ancestors", "ERR_BLOCKED", "404", "Framing"]
    host = f"http://127.0.0.1:{site.server_address[1]}"
    with serving(board.bootstrap, frame_ancestors=(host,)) as running:
        running.bound(str(board.live))
        address = f"http://127.0.0.1:{running.port}"
        page.goto(f"{host}/{address}/embed/table/users_ui#key={KEY.replace(' ', '%20')}")
        page.evaluate(
            "address => { document.querySelector('iframe').src = address }", f"{address}/embed/table/users_ui#key={KEY}"
        )
        frame = page.frame_locator("iframe")
        expect(frame.get_by_role("heading", name="users_ui")).to_be_visible()
        expect(frame.locator('.ag-row[row-index="0"] [col-id="userId"]')).to_have_text("u999")
        expect(frame.get_by_role("button", name="Log out")).to_have_count(0)
        page.evaluate("address => { document.querySelector('iframe').src = address }", f"{address}/embed/board")
        expect(frame.get_by_role("heading", name="final_ui", exact=True)).to_be_visible()
        expect(frame.get_by_role("region", name="Control panel")).to_have_count(0)
        page.goto(f"{host}/{address}/table/users_ui")
        expect(frame.get_by_role("heading", name="users_ui")).to_have_count(0)
