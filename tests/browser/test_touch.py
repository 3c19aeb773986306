"""The page on a small phone, with fingers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from live import Running
from looking import COUNT, expect_first, expect_range, log_in, scroll_to_end, table, user
from playwright.sync_api import Browser, Locator, Page, expect

pytestmark = pytest.mark.integration

STEPS = 8


@pytest.fixture(params=[360, 390])
def phone(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Page]:
    """A tab of a phone."""
    context = browser.new_context(
        viewport={"width": request.param, "height": 780}, has_touch=True, is_mobile=True, timezone_id="UTC"
    )
    context.set_default_timeout(20_000)
    yield context.new_page()
    context.close()


def swipe(page: Page, start: tuple[float, float], end: tuple[float, float]) -> None:
    """One finger from one point to another."""
    session = page.context.new_cdp_session(page)

    def touch(kind: str, *points: tuple[float, float]) -> None:
        found = [{"x": x, "y": y} for x, y in points]
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": found})

    touch("touchStart", start)
    for step in range(1, STEPS + 1):
        share = step / STEPS
        touch("touchMove", (start[0] + (end[0] - start[0]) * share, start[1] + (end[1] - start[1]) * share))
    touch("touchEnd")
    session.detach()


def middle(place: Locator) -> tuple[float, float]:
    """Where it is on the screen."""
    box = place.bounding_box()
    assert box is not None
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def test_a_phone_shows_the_board_and_fingers_use_it(phone: Page, running: Running) -> None:
    log_in(phone, running)
    grid = table(phone)
    expect_first(grid, "userId", ["u999", "u998", "u997"])
    width = phone.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert width[0] == width[1], "the page must not be wider than the screen"
    for name in ("Columns", "Export", "Chart", "Copy", "First", "Prev", "Next", "Last", "Newest first", "Refresh"):
        expect(grid.get_by_role("button", name=name, exact=True)).to_be_in_viewport(ratio=1)

    grid.get_by_role("columnheader", name="name").tap()
    grid.get_by_role("columnheader", name="name").tap()
    people = sorted((user(number) for number in range(COUNT)), key=lambda row: row[1], reverse=True)
    expect_first(grid, "userId", [row[0] for row in people[:3]])
    grid.get_by_role("button", name="Next").tap()
    expect_range(grid, 301, 600, COUNT)
    expect_first(grid, "userId", [people[300][0]])

    names = phone.locator("app-live-table h2")
    expect(names).to_have_text(["users_ui", "final_ui"])
    handle = phone.get_by_role("button", name="Move users_ui")
    handle.evaluate("handle => handle.scrollIntoView()")
    swipe(phone, middle(handle), middle(phone.get_by_role("button", name="Move final_ui")))
    expect(names).to_have_text(["final_ui", "users_ui"])


def test_a_swipe_at_the_end_turns_the_page(phone: Page, running: Running) -> None:
    log_in(phone, running, "/table/users_ui")
    grid = table(phone)
    expect_first(grid, "userId", ["u999"])
    scroll_to_end(grid)
    expect(grid.locator('.ag-row[row-index="299"]')).to_be_visible()
    # Whoever arrives at the end in full swing stops there first.
    phone.wait_for_timeout(300)
    x, y = middle(grid.locator(".grid"))
    swipe(phone, (x, y + 100), (x, y - 150))
    expect_range(grid, 301, 600, COUNT)
