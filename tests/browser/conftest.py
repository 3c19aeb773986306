"""A board that the tests play, a server that shows it, and a browser that looks."""

from __future__ import annotations

from collections.abc import Iterator

import chromium
import pytest
from live import Board, Running, serving
from looking import fill
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, expect, sync_playwright

from liveboard.contract.names import Names
from liveboard.kafka.admin import Admin

NAMES = Names()

# Both cores may be busy with something else.
PATIENCE_MS = 20_000
expect.set_options(timeout=PATIENCE_MS)


@pytest.fixture(scope="module")
def module_board(kafka: str) -> Board:
    """A board with a live generation."""
    Admin({"bootstrap.servers": kafka}).create(["users", "users-b", "liveboard-control"])
    board = Board(kafka)
    Admin({"bootstrap.servers": kafka}).create_changelogs([NAMES.verdicts])
    fill(board)
    return board


@pytest.fixture(scope="module")
def module_server(module_board: Board) -> Iterator[Running]:
    """A server that shows the board."""
    with serving(module_board.bootstrap) as running:
        yield running


@pytest.fixture
def board(module_board: Board) -> Iterator[Board]:
    """The board for a test that writes; the next one finds rows as if nobody had."""
    yield module_board
    before = list(module_board.generations)
    fill(module_board)
    for generation in before:
        module_board.close(generation)


@pytest.fixture
def running(module_board: Board, module_server: Running) -> Running:
    """The server, with the board as it is now."""
    module_server.bound(str(module_board.live))
    return module_server


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A real browser; not longer than for these tests, since no others can run an event loop beside Playwright's."""
    with sync_playwright() as playwright:
        browser = chromium.launch(playwright)
        yield browser
        browser.close()


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    """A viewer's browser, without a past."""
    context = browser.new_context(viewport={"width": 1440, "height": 900}, timezone_id="UTC")
    context.set_default_timeout(PATIENCE_MS)
    yield context
    context.close()


@pytest.fixture
def complaints() -> list[str]:
    """What the browser's console may say without failing the test: beginnings."""
    return []


@pytest.fixture
def page(context: BrowserContext, complaints: list[str]) -> Iterator[Page]:
    """A tab whose console stays empty."""
    page = context.new_page()
    said: list[str] = []

    def listen(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            said.append(message.text)

    page.on("console", listen)
    page.on("pageerror", lambda error: said.append(str(error)))
    yield page
    assert [text for text in said if not any(part in text for part in complaints)] == []
