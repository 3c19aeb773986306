"""Alerts on the page: how many are raised, and which rows."""

from __future__ import annotations

import pytest
from axe import problems
from live import NAMES, Board, Running
from looking import log_in, stamp, table
from playwright.sync_api import Page, expect

from liveboard.contract.status import AlertFigures
from liveboard.kafka.admin import Admin

pytestmark = pytest.mark.integration


def _raise(board: Board, *keys: str, state: bool = True) -> None:
    """What the pipeline writes to the table alerts_ui."""
    rows = {
        f'="overdrawn","{key}"': ["overdrawn", "final_ui", key, "raised", stamp(1), stamp(2)] if state else None
        for key in keys
    }
    board.write_topic(NAMES.raised, rows)


def test_b42_the_page_says_how_many_alerts_are_raised_and_marks_their_rows(
    board: Board, running: Running, page: Page
) -> None:
    log_in(page, running)
    grid = table(page, "final_ui")
    expect(grid.locator(".ag-row").first).to_be_visible()
    badge = page.get_by_role("link", name="alert")
    expect(badge).to_have_count(0)  # a board without alerts
    admin = Admin({"bootstrap.servers": board.bootstrap})
    admin.delete([NAMES.raised])
    admin.create_changelogs([NAMES.raised])
    _raise(board, "0-998", "0-997")
    board.announce(alerts={"overdrawn": AlertFigures(raised=2)})
    expect(badge).to_have_text("⚠ 2 alerts")
    marked = grid.locator(".ag-row.raised")
    expect(marked).to_have_count(2)
    expect(marked.first).to_have_attribute("row-id", "0-998")
    expect(marked.first.get_by_role("gridcell").first).to_have_accessible_name("u998 alert")
    expect(table(page, "users_ui").locator(".ag-row.raised")).to_have_count(0)
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        assert problems(page) == []
    _raise(board, "0-998", state=False)
    expect(marked).to_have_count(1)
    expect(badge).to_have_text("⚠ 1 alert")
    badge.click()
    key = table(page, "alerts_ui").locator('.ag-row [col-id="key"]')
    expect(key).to_have_text("0-997")
    key.click()  # its key has characters that mean something in HTML
    expect(page.get_by_role("complementary")).to_contain_text("overdrawn")
    page.keyboard.press("Escape")
    _raise(board, "0-997", state=False)
    expect(badge).to_have_text("⚠ no alerts")
