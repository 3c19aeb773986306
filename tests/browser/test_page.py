"""The page in a real browser, over the real server and a real broker; the test plays the pipeline."""

from __future__ import annotations

import re
import time

import pytest
from live import KEY, NAMES, Board, Running, serving, wait
from looking import (
    COUNT,
    COUNT_FEWEST_ROWS,
    TABLES,
    expect_first,
    expect_range,
    fill,
    log_in,
    scroll_to_end,
    stamp,
    table,
    user,
)
from playwright.sync_api import Page, Route, expect

from liveboard.commands import access
from liveboard.commands.access import Access
from liveboard.contract.board import Wiring
from liveboard.contract.changelog import timestamp_text
from liveboard.contract.status import GenerationRecord, Phase, Progress, State
from liveboard.serving import status_topic

pytestmark = pytest.mark.integration


def test_rows_appear_and_follow_changes(page: Page, running: Running, board: Board) -> None:
    log_in(page, running)
    grid = table(page)
    expect_first(grid, "userId", ["u999", "u998", "u997"])
    expect_range(grid, 1, 300, 1_000)
    expect(grid.locator(".state")).to_have_text("live")
    board.write(str(board.live), {"0-998": user(998, age=77)})
    expect_first(grid, "age", [str(user(999)[2]), "77"])
    expect(grid.locator(".ag-cell-data-changed")).to_have_text("77")
    board.write(str(board.live), {"0-1000": user(1000)})
    expect_first(grid, "userId", ["u1000", "u999", "u998"])
    expect_range(grid, 1, 300, 1_001)
    expect(grid.locator(".tempo")).to_contain_text("rows/s, newest row")


def test_tables_that_are_there_later_than_the_status_are_shown(page: Page, running: Running) -> None:
    asked: list[str] = []

    def late(route: Route) -> None:
        asked.append(route.request.url)
        if len(asked) == 1:
            route.fulfill(json={"tables": []})
        else:
            route.continue_()

    page.route("**/api/tables", late)
    with page.expect_response(lambda response: response.url.endswith("/api/tables") and response.json()["tables"]):
        log_in(page, running)
    expect_first(table(page), "userId", ["u999", "u998", "u997"])


def test_sort_filter_and_search_are_over_the_whole_table(page: Page, running: Running) -> None:
    log_in(page, running, "/table/users_ui")
    grid = table(page)
    people = [user(number) for number in range(COUNT)]
    grid.get_by_role("columnheader", name="age").click()
    expect_first(grid, "userId", [row[0] for row in sorted(people, key=lambda row: row[2])[:5]])
    grid.get_by_role("columnheader", name="age").click()
    expect_first(grid, "userId", [row[0] for row in sorted(people, key=lambda row: -row[2])[:5]])
    grid.get_by_label("Search all rows of users_ui").fill("user 99")
    found = [row for row in people if "User 99" in row[1]]
    expect_range(grid, 1, len(found), len(found))
    expect_first(grid, "userId", [row[0] for row in sorted(found, key=lambda row: -row[2])])
    grid.get_by_label("Search all rows of users_ui").fill("")
    grid.locator('.ag-header-cell[col-id="name"] .ag-header-cell-filter-button').click()
    page.get_by_label("Filter Value").first.fill("user 12")
    found = [row for row in people if "User 12" in row[1]]
    expect_range(grid, 1, len(found), len(found))
    expect_first(grid, "userId", [row[0] for row in sorted(found, key=lambda row: -row[2])])


def test_pages(page: Page, running: Running) -> None:
    log_in(page, running, "/table/users_ui")
    grid = table(page)
    expect(grid.get_by_role("button", name="Prev")).to_be_disabled()
    for first, last in ((301, 600), (601, 900), (901, 1_000)):
        grid.get_by_role("button", name="Next").click()
        expect_range(grid, first, last, 1_000)
        expect_first(grid, "userId", [f"u{COUNT - first}"])
    expect(grid.get_by_role("button", name="Next")).to_be_disabled()
    expect(grid.get_by_role("button", name="Last")).to_be_disabled()
    grid.get_by_role("button", name="Prev").click()
    expect_range(grid, 601, 900, 1_000)
    grid.get_by_role("button", name="Refresh").click()
    expect(grid.locator(".state")).to_have_text("live")
    expect_range(grid, 601, 900, 1_000)
    expect_first(grid, "userId", ["u399"])
    grid.get_by_role("button", name="Last").click()
    expect_range(grid, 901, 1_000, 1_000)
    expect_first(grid, "userId", ["u99"])
    grid.get_by_role("button", name="First", exact=True).click()
    expect_first(grid, "userId", ["u999"])


def test_scrolling_on_at_the_end_turns_the_page(page: Page, running: Running) -> None:
    log_in(page, running, "/table/users_ui")
    grid = table(page)
    expect_first(grid, "userId", ["u999"])
    scroll_to_end(grid)
    expect_range(grid, 1, 300, 1_000)
    # On a slow machine the pause between two turns of the wheel may seem shorter than it was.
    for _ in range(60):
        page.wait_for_timeout(300)
        if grid.locator(".range").inner_text().startswith("rows 301"):
            break
        page.mouse.wheel(0, 100)
    expect_range(grid, 301, 600, 1_000)
    expect(grid.locator('.ag-row[row-index="0"] [col-id="userId"]')).to_have_text("u699")


def test_b31_a_wrong_key_and_the_right_one(page: Page, running: Running) -> None:
    log_in(page, running, key="not the key")
    expect(page.get_by_role("alert")).to_have_text("This key is not right.")
    page.get_by_label("Key").fill(KEY)
    page.get_by_role("button", name="Log in").click()
    expect_first(table(page), "userId", ["u999"])
    page.reload()
    expect_first(table(page), "userId", ["u999"])
    page.get_by_role("button", name="Log out").click()
    page.reload()
    expect(page.get_by_label("Key")).to_be_visible()


def test_a_login_link_works_once(page: Page, running: Running, complaints: list[str]) -> None:
    complaints.append("401")
    link = access.login_link(Access(f"http://127.0.0.1:{running.port}", KEY))
    page.goto(link)
    expect_first(table(page), "userId", ["u999"])
    assert "login" not in page.url
    page.get_by_role("button", name="Log out").click()
    page.goto("about:blank")
    page.goto(link)
    expect(page.get_by_role("alert")).to_contain_text("has been used")


def test_a_swap_never_empties_the_grid(page: Page, running: Running, board: Board) -> None:
    log_in(page, running)
    grid = table(page)
    expect_first(grid, "userId", ["u999"])
    page.evaluate(COUNT_FEWEST_ROWS)
    fill(board, 2_000)
    expect_range(grid, 1, 300, 2_000)
    expect(grid.locator(".state")).to_have_text("live")
    assert page.evaluate("window.fewest") > 5


@pytest.mark.usefixtures("board")  # which is filled anew afterwards
def test_the_very_first_build_is_shown_as_soon_as_its_rows_are_written(page: Page, kafka: str) -> None:
    board = Board(kafka)
    generation = board.build(TABLES)
    board.write(generation, {"0-0": user(0)})
    board.written(generation)
    board.announce(message="building g1: 10 % of 1,000 records")
    with serving(kafka) as running:
        log_in(page, running, "/table/users_ui")
        grid = table(page)
        expect_first(grid, "userId", ["u0"])
        expect(grid.locator(".state")).to_have_text("building g1: 10 % of 1,000 records")
        page.evaluate(COUNT_FEWEST_ROWS)
        board.write(generation, {"0-1": user(1)})
        expect_first(grid, "userId", ["u1", "u0"])
        board.switch(generation)
        expect(grid.locator(".state")).to_have_text("live")
        # Another build beside it is not shown.
        after = board.build(TABLES)
        board.write(after, {f"0-{n}": user(n) for n in range(9)})
        board.announce(phase=Phase.BUILDING, message="building g2: 90 % of 9 records")
        board.write(generation, {"0-2": user(2)})
        expect_first(grid, "userId", ["u2", "u1", "u0"])
        expect(grid.locator(".state")).to_have_text("live")
        assert page.evaluate("window.fewest") > 0


def test_stale_and_healed_when_the_server_comes_back(page: Page, board: Board, complaints: list[str]) -> None:
    complaints += ["WebSocket connection", "Failed to load resource"]
    running = Running(board.bootstrap)
    running.bound(str(board.live))
    log_in(page, running)
    grid = table(page)
    expect_first(grid, "userId", ["u999"])
    grid.evaluate("(grid) => (grid.dataset.seen = 'before')")
    running.stop()
    expect(grid.locator(".state")).to_have_text(re.compile(r"stale since \d\d:\d\d:\d\d"))
    expect_first(grid, "userId", ["u999"])
    board.write(str(board.live), {"0-999": user(999, age=99)})
    board.announce()
    again = Running(board.bootstrap, port=running.port)
    try:
        expect(grid.locator(".state")).to_have_text("live")
        expect_first(grid, "age", ["99"])
        # It is the same grid: it stood there all the time.
        expect(grid).to_have_attribute("data-seen", "before")
    finally:
        again.stop()


def test_stale_and_healed_when_the_pipeline_comes_back(
    page: Page, running: Running, board: Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    # However slow the page is.
    monkeypatch.setattr(status_topic, "CAUGHT_UP_AFTER_S", 3_600)
    log_in(page, running, "/table/users_ui")
    grid = table(page)
    expect(grid.locator(".state")).to_have_text("live")
    board.announce(phase=Phase.RESTARTING, message="a query has died")
    expect(grid.locator(".state")).to_have_text(re.compile(r"stale since \d\d:\d\d:\d\d"))
    expect_first(grid, "userId", ["u999"])
    board.announce()
    expect(grid.locator(".state")).to_have_text("catching up")
    # So it is called also for who comes now, until a row of now comes.
    page.reload()
    expect(page.locator("header .state")).to_have_text("catching up")
    expect(grid.locator(".state")).to_have_text("catching up")
    board.write(str(board.live), {"0-1000": [*user(1000)[:3], timestamp_text(int(time.time() * 1000) + 1)]})
    expect(grid.locator(".state")).to_have_text("live")
    expect(page.locator("header .state")).to_have_text("live")


def test_the_control_panel_sends_a_message(page: Page, running: Running, board: Board) -> None:
    log_in(page, running)
    panel = page.get_by_role("region", name="Control panel")
    panel.locator("summary").click()
    expect(panel.locator("summary")).to_contain_text(f"users: users-{board.live}")
    panel.get_by_label("users", exact=True).select_option("users-b")
    panel.get_by_label("join", exact=True).select_option("inner")
    sent: list[str | None] = []
    page.on("request", lambda request: sent.append(request.post_data) if request.url.endswith("/api/control") else None)
    panel.get_by_role("button", name="Preview").click()
    panel.get_by_role("button", name="Swap").click()
    expect(panel.get_by_text("Sent.")).to_be_visible()
    assert sent == ['{"topics":{"users":"users-b"},"joinType":"inner"}']
    building = GenerationRecord(
        state=State.BUILDING, wiring=Wiring({}, {}), tables={}, progress=Progress(450, 1_000, 10.0)
    )
    board.announce(generations={**board.generations, "g999": building})
    expect(panel.get_by_role("progressbar")).to_have_attribute("value", "45")
    # What was chosen stays chosen while it is built; what was said goes when there is a verdict.
    expect(panel.get_by_label("users", exact=True)).to_have_value("users-b")
    verdict = [0, 1, "{}", "applied", None, stamp(1)]
    board.write_topic(NAMES.verdicts, {"0-1": verdict})
    expect(panel.get_by_text("applied")).to_be_visible()
    expect(panel.get_by_text("Sent.")).to_have_count(0)


def test_the_rejects_badge_opens_them(page: Page, running: Running, board: Board) -> None:
    log_in(page, running)
    badge = page.get_by_role("link", name="reject")
    expect(badge).to_have_text("0 rejects")
    reject = ["users", 0, 7, "age: expected a bigint, found x", '{"age":"x"}', stamp(1)]
    board.write(str(board.live), {"users-0-7": reject}, "rejects_ui")
    expect(badge).to_have_text("1 reject")
    badge.click()
    expect_first(table(page, "rejects_ui"), "reason", ["age: expected a bigint, found x"])


def test_the_theme_is_chosen_and_remembered(page: Page, running: Running) -> None:
    log_in(page, running)
    page.get_by_role("button", name="Dark theme").click()
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    expect(page.get_by_role("button", name="Light theme")).to_be_visible()


def test_logging_out_ends_all_subscriptions(page: Page, running: Running) -> None:
    log_in(page, running)
    expect_first(table(page), "userId", ["u999"])
    expect_range(table(page, "final_ui"), 1, 300, COUNT)
    # users_ui, final_ui, and of the panels: orchestrator_status, control_raw, rejects_ui; cards have some more
    wait(lambda: running.server.hub.subscriptions >= 5)
    page.get_by_role("button", name="Log out").click()
    wait(lambda: running.server.hub.subscriptions == 0)


def test_cards_are_moved_and_columns_hidden(page: Page, running: Running) -> None:
    log_in(page, running)
    names = page.locator("app-live-table h2")
    expect(names).to_have_text(["users_ui", "final_ui"])
    page.get_by_role("button", name="Move users_ui").focus()
    page.keyboard.press("ArrowRight")
    expect(names).to_have_text(["final_ui", "users_ui"])
    page.reload()
    expect(names).to_have_text(["final_ui", "users_ui"])
    page.get_by_role("button", name="Move users_ui").drag_to(page.locator(".card").first)
    expect(names).to_have_text(["users_ui", "final_ui"])
    grid = table(page)
    grid.get_by_role("button", name="Columns").click()
    page.get_by_role("checkbox", name="age").uncheck()
    expect(grid.get_by_role("columnheader", name="age")).to_have_count(0)
    expect(grid.get_by_role("columnheader", name="name")).to_be_visible()


def test_charts_follow_the_table(page: Page, running: Running, board: Board) -> None:
    log_in(page, running, "/table/users_ui")
    grid = table(page)
    expect_first(grid, "userId", ["u999"])
    grid.get_by_role("button", name="Chart").click()
    chart = page.get_by_role("dialog", name="Chart of users_ui")
    expect(chart.get_by_role("img", name="age over time")).to_be_visible()
    expect(chart.get_by_role("img", name="Distribution of age")).to_be_visible()
    expect(chart.get_by_text("Over 1,000 rows.")).to_be_visible()
    board.write(str(board.live), {"0-7000": user(7000)})
    expect(chart.get_by_text("Over 1,001 rows.")).to_be_visible()
    chart.get_by_label("Column").select_option("name")
    expect(chart.get_by_role("img", name="Rows per name")).to_be_visible()
    page.keyboard.press("Escape")
    expect(chart).to_be_hidden()
