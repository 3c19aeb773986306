"""The main path with nothing but a keyboard: log in, sort, filter, turn pages, swap."""

from __future__ import annotations

import pytest
from live import KEY, Board, Running
from looking import COUNT, expect_first, expect_range, table, user
from playwright.sync_api import Locator, Page, expect

pytestmark = pytest.mark.integration

MOST_TABS = 80


def tab_to(page: Page, place: Locator) -> None:
    """Presses Tab until it has the focus."""
    expect(place).to_be_visible()
    for _ in range(MOST_TABS):
        if place.evaluate("element => element === document.activeElement"):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"{place} cannot be reached with the Tab key")


def test_the_main_path_needs_no_mouse(page: Page, running: Running, board: Board) -> None:
    people = [user(number) for number in range(COUNT)]
    page.goto(f"http://127.0.0.1:{running.port}/")
    expect(page.get_by_label("Key")).to_be_focused()
    page.keyboard.type(KEY)
    page.keyboard.press("Enter")
    grid = table(page)
    expect_first(grid, "userId", ["u999"])

    tab_to(page, grid.locator('.ag-header-cell[col-id="userId"]'))
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(grid.locator('.ag-header-cell[col-id="age"]')).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    people.sort(key=lambda row: -row[2])
    expect_first(grid, "userId", [row[0] for row in people[:3]])

    page.keyboard.press("Control+Enter")
    expect(page.get_by_label("Filter Value").first).to_be_visible()
    tab_to(page, page.get_by_role("combobox", name="Filtering operator"))
    page.keyboard.press("Enter")
    for _ in range(2):
        page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    tab_to(page, page.get_by_label("Filter Value").first)
    page.keyboard.type("60")
    found = [row for row in people if row[2] < 60]
    expect_range(grid, 1, 300, len(found))
    expect_first(grid, "userId", [row[0] for row in found[:3]])
    page.keyboard.press("Escape")

    tab_to(page, grid.get_by_role("button", name="Next"))
    page.keyboard.press("Enter")
    expect_range(grid, 301, min(600, len(found)), len(found))
    expect_first(grid, "userId", [row[0] for row in found[300:303]])

    panel = page.get_by_role("region", name="Control panel")
    tab_to(page, panel.locator("summary"))
    page.keyboard.press("Enter")
    expect(panel.get_by_label("users", exact=True).locator("option", has_text="users-b")).to_have_count(1)
    tab_to(page, panel.get_by_label("users", exact=True))
    page.keyboard.type("users-b")
    sent: list[str | None] = []
    page.on("request", lambda request: sent.append(request.post_data) if request.url.endswith("/api/control") else None)
    tab_to(page, panel.get_by_role("button", name="Preview"))
    page.keyboard.press("Enter")
    expect(panel.get_by_role("button", name="Swap")).to_be_visible()
    tab_to(page, panel.get_by_role("button", name="Swap"))
    page.keyboard.press("Enter")
    expect(panel.get_by_text("Sent.")).to_be_visible()
    assert sent == ['{"topics":{"users":"users-b"}}']


def test_the_grid_is_walked_with_arrows_and_turns_its_page_at_the_end(page: Page, running: Running) -> None:
    page.goto(f"http://127.0.0.1:{running.port}/table/users_ui")
    expect(page.get_by_label("Key")).to_be_focused()
    page.keyboard.type(KEY)
    page.keyboard.press("Enter")
    grid = table(page)
    expect_first(grid, "userId", ["u999"])
    tab_to(page, grid.locator('.ag-header-cell[col-id="userId"]'))
    page.keyboard.press("ArrowDown")
    expect(grid.locator('.ag-row[row-index="0"] [col-id="userId"]')).to_be_focused()
    page.keyboard.press("End")
    expect(grid.locator('.ag-row[row-index="299"] [col-id="ts"]')).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect_range(grid, 301, 600, COUNT)
    expect(grid.locator('.ag-row[row-index="0"] [col-id="ts"]')).to_be_focused()
    page.keyboard.press("PageUp")
    expect_range(grid, 1, 300, COUNT)
    expect(grid.locator('.ag-row[row-index="299"] [col-id="ts"]')).to_be_focused()
