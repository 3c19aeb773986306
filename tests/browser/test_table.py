"""What a viewer does with one table, in a real browser, against what plain Python says about the same rows."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
from live import KEY, Board, Running
from looking import COUNT, COUNT_FEWEST_ROWS, expect_first, expect_range, log_in, stamp, table, user
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect

pytestmark = pytest.mark.integration

# As they are shown: the newest first.
PEOPLE = [user(number) for number in reversed(range(COUNT))]
AGES: list[tuple[str, list[str], Callable[[int], bool]]] = [
    ("Equals", ["37"], lambda age: age == 37),
    ("Does not equal", ["37"], lambda age: age != 37),
    ("Greater than", ["90"], lambda age: age > 90),
    ("Less than or equal to", ["3"], lambda age: age <= 3),
    ("Between", ["10", "20"], lambda age: 10 <= age <= 20),
]
# Where the viewer is, the clock shows half past two when it is nine in UTC.
PLACE = "Asia/Kolkata"
TIMES: list[tuple[str, list[str], Callable[[str], bool]]] = [
    ("After", ["2026-01-31T14:35:00"], lambda ts: ts > stamp(300)),
    ("Before", ["2026-01-31T14:30:07"], lambda ts: ts < stamp(7)),
    ("Between", ["2026-01-31T14:31:00", "2026-01-31T14:32:00"], lambda ts: stamp(60) <= ts <= stamp(120)),
]


def narrow(page: Page, grid: Locator, column: str, operator: str, values: list[str]) -> None:
    """Sets the filter of a column."""
    grid.locator(f'.ag-header-cell[col-id="{column}"] .ag-header-cell-filter-button').click()
    page.get_by_role("combobox", name="Filtering operator").click()
    page.get_by_role("option", name=operator, exact=True).click()
    fields = page.locator(".ag-filter-body input:visible")
    expect(fields).to_have_count(len(values))
    for place, value in enumerate(values):
        fields.nth(place).fill(value)


def expect_found(page: Page, grid: Locator, found: list[list[Any]]) -> None:
    """Waits until the table has these rows; closes the filter."""
    expect_range(grid, 1, min(300, len(found)), len(found))
    expect_first(grid, "userId", [row[0] for row in found[:5]])
    page.keyboard.press("Escape")


def test_b28_number_filters_are_over_the_whole_table(page: Page, running: Running) -> None:
    log_in(page, running, "/table/users_ui")
    grid = table(page)
    for operator, values, keeps in AGES:
        narrow(page, grid, "age", operator, values)
        expect_found(page, grid, [row for row in PEOPLE if keeps(row[2])])
    # Over another column as well, and of two filters both count.
    narrow(page, grid, "name", "Begins with", ["user 9"])
    expect_found(page, grid, [row for row in PEOPLE if 10 <= row[2] <= 20 and row[1].startswith("User 9")])


def test_b28_time_filters_are_in_the_time_of_the_viewer(browser: Browser, running: Running) -> None:
    context = browser.new_context(timezone_id=PLACE)
    page = context.new_page()
    log_in(page, running, "/table/users_ui")
    grid = table(page)
    expect_first(grid, "ts", ["2026-01-31 14:46:39"])
    expect(grid.get_by_role("columnheader", name="ts (UTC+5:30)")).to_be_visible()
    for operator, values, keeps in TIMES:
        narrow(page, grid, "ts", operator, values)
        expect_found(page, grid, [row for row in PEOPLE if keeps(row[3])])
    context.close()


@pytest.mark.parametrize("format", ["CSV", "Parquet"])
def test_b28_an_export_has_all_rows_that_match_in_their_order(
    page: Page, running: Running, tmp_path: Path, format: str
) -> None:
    log_in(page, running, "/table/users_ui")
    grid = table(page)
    grid.get_by_role("columnheader", name="age").click()
    expect_first(grid, "age", ["0"])
    narrow(page, grid, "age", "Greater than", ["50"])
    found = sorted((row for row in reversed(PEOPLE) if row[2] > 50), key=lambda row: row[2])
    assert len(found) > 300, "more than a page, so that a page alone would not do"
    expect_found(page, grid, found)
    grid.get_by_role("button", name="Export").click()
    with page.expect_download() as download:
        page.get_by_role("button", name=format).click()
    file = tmp_path / download.value.suggested_filename
    download.value.save_as(file)
    assert file.name == f"users_ui.{format.lower()}"
    assert (from_csv if format == "CSV" else from_parquet)(file) == found


def from_csv(file: Path) -> list[list[Any]]:
    """The rows of a file."""
    with file.open(newline="") as text:
        return [[row["userId"], row["name"], int(row["age"]), row["ts"]] for row in csv.DictReader(text)]


def from_parquet(file: Path) -> list[list[Any]]:
    """The rows of a file, whose columns have types of their own."""
    rows = pyarrow.parquet.read_table(file).to_pylist()
    return [[row["userId"], row["name"], row["age"], iso(row["ts"])] for row in rows]


def iso(ts: datetime) -> str:
    """A time as it is on the wire."""
    return ts.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def test_b28_a_cell_rows_and_visible_columns_are_copied(context: BrowserContext, page: Page, running: Running) -> None:
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    log_in(page, running, "/table/users_ui")
    grid = table(page)
    cell = grid.locator('.ag-row[row-index="2"] [col-id="name"]')
    cell.click()
    page.keyboard.press("Control+c")
    expect(grid.get_by_text("Copied the cell.")).to_be_visible()
    assert copied(page) == "User 997"
    grid.get_by_role("button", name="Columns").click()
    page.get_by_role("checkbox", name="ts").uncheck()
    page.keyboard.press("Escape")
    expect(grid.get_by_role("columnheader", name="ts")).to_have_count(0)
    grid.locator('.ag-row[row-index="4"] [col-id="name"]').click(modifiers=["ControlOrMeta"])
    page.keyboard.press("Control+c")
    expect(grid.get_by_text("Copied 2 rows.")).to_be_visible()
    assert copied(page) == "userId\tname\tage\n" + "\n".join(
        f"{PEOPLE[n][0]}\t{PEOPLE[n][1]}\t{PEOPLE[n][2]}" for n in (2, 4)
    )
    grid.get_by_role("button", name="Columns").click()
    page.get_by_role("checkbox", name="ts").check()
    expect(grid.get_by_role("columnheader", name="ts")).to_be_visible()


def copied(page: Page) -> str:
    """What is on the clipboard."""
    text: str = page.evaluate("navigator.clipboard.readText()")
    return text


def test_b43_a_row_that_is_pressed_stays_under_the_pointer(page: Page, running: Running, board: Board) -> None:
    log_in(page, running, "/table/users_ui")
    grid = table(page)
    expect_first(grid, "userId", ["u999", "u998"])
    grid.locator('.ag-row[row-index="1"] [col-id="name"]').hover()
    page.mouse.down()
    board.write(str(board.live), {"0-1000": user(1000)})
    expect(grid.get_by_role("button", name="1 new row")).to_be_visible()
    page.mouse.up()
    expect(page.get_by_role("complementary")).to_contain_text("u998")
    expect(grid.locator(".ag-row-selected")).to_contain_text("u998")


def test_b43_new_rows_slide_in_and_reading_holds_them(page: Page, running: Running, board: Board) -> None:
    log_in(page, running, "/table/users_ui")
    grid = table(page)
    live = str(board.live)
    expect_first(grid, "userId", ["u999", "u998"])
    board.write(live, {"0-1000": user(1000)})
    expect_first(grid, "userId", ["u1000", "u999"])
    expect(grid.locator(".ag-row.fresh")).to_contain_text("u1000")
    grid.locator(".ag-row").first.hover()
    page.mouse.wheel(0, 600)
    expect(grid.get_by_role("button", name="Paused")).to_be_visible()
    board.write(live, {f"0-{n}": user(n) for n in range(1001, 1013)})
    top = grid.get_by_role("button", name="12 new rows")
    expect(top).to_be_visible()
    held = [f"u{1000 - n}" for n in range(20, 25)]
    for place, text in enumerate(held, 20):
        expect(grid.locator(f'.ag-row[row-index="{place}"] [col-id="userId"]')).to_have_text(text)
    # Their values follow all the same.
    board.write(live, {"0-980": user(980, age=4_711)})
    expect(grid.locator('.ag-row[row-index="20"] [col-id="age"]')).to_have_text("4711")
    expect(grid.locator('.ag-row[row-index="20"] [col-id="age"]')).to_have_class(re.compile("up"))
    grid.get_by_role("button", name="Next").click()
    expect_range(grid, 301, 600, 1_001)
    expect_first(grid, "userId", ["u700"])
    top.click()
    expect_first(grid, "userId", ["u1012", "u1011"])
    expect_range(grid, 1, 300, 1_013)
    expect(top).to_have_count(0)
    grid.get_by_role("button", name="Newest first").click()
    expect_first(grid, "userId", ["u0", "u1", "u2"])


@pytest.mark.parametrize("every_ms", [20, 400])
def test_b43_there_are_rows_to_be_seen_while_many_come(
    page: Page, running: Running, board: Board, every_ms: int
) -> None:
    """In small parts as they happen, and in large ones, as from a machine that is busy."""
    log_in(page, running)
    grid = table(page)
    expect_first(grid, "userId", ["u999", "u998"])
    expect_first(table(page, "final_ui"), "userId", ["u999"])
    page.evaluate(COUNT_FEWEST_ROWS)
    count = every_ms // 20
    for first in range(COUNT, COUNT + 10 * count, count):
        board.write(str(board.live), {f"0-{n}": user(n) for n in range(first, first + count)})
        page.wait_for_timeout(every_ms)
    expect_first(grid, "userId", [f"u{COUNT + 10 * count - 1}"])
    assert page.evaluate("window.fewest") > 5


def test_b43_what_is_set_up_is_in_the_address(page: Page, context: BrowserContext, running: Running) -> None:
    log_in(page, running)
    grid = table(page)
    grid.get_by_role("button", name="Columns").click()
    page.get_by_role("checkbox", name="name").uncheck()
    page.get_by_role("button", name="Format of age").click()
    page.get_by_label("Format", exact=True).select_option("percent")
    page.get_by_role("button", name="Add a rule").click()
    page.get_by_label("Value").fill("50")
    page.get_by_label("Icon").select_option("\N{WARNING SIGN}")
    page.get_by_role("button", name="Done").click()
    narrow(page, grid, "age", "Greater than", ["50"])
    page.keyboard.press("Escape")
    grid.get_by_role("columnheader", name="age").click()
    found = sorted((row for row in reversed(PEOPLE) if row[2] > 50), key=lambda row: row[2])

    def expect_view(each: Page) -> None:
        shown = table(each)
        expect_range(shown, 1, 300, len(found))
        expect_first(shown, "userId", [row[0] for row in found[:2]])
        expect_first(shown, "age", [f"\N{WARNING SIGN} {row[2] * 100:,}.0%" for row in found[:2]])
        expect(shown.get_by_role("columnheader", name="name")).to_have_count(0)

    expect_view(page)
    page.reload()
    expect_view(page)
    page.get_by_label("Open users_ui alone").click()
    expect(page).to_have_url(re.compile("/table/users_ui[?]view[.]users_ui="))
    expect_view(page)
    page.get_by_label("Back to the board").click()
    expect_view(page)
    page.go_back()
    expect(page).to_have_url(re.compile("/table/users_ui"))
    expect_view(page)
    other = context.new_page()
    other.goto(page.url)
    # A new tab may have to log in; the address keeps the view meanwhile.
    login = other.get_by_label("Key")
    expect(login.or_(table(other)).first).to_be_visible()
    if login.is_visible():
        login.fill(KEY)
        other.keyboard.press("Enter")
    expect_view(other)
    other.close()
    table(page).get_by_role("button", name="Columns").click()
    page.get_by_role("button", name="Reset the view").click()
    expect_first(table(page), "userId", ["u999"])
    expect(page).not_to_have_url(re.compile("view"))


def test_a_search_finds_the_numbers_and_times_that_are_shown(browser: Browser, running: Running) -> None:
    context = browser.new_context(timezone_id=PLACE)
    page = context.new_page()
    log_in(page, running, "/table/final_ui")
    grid = table(page, "final_ui")
    expect_first(grid, "balance", ["249.75"])
    for text in ("249.50", "2026-01-31 14:46:38"):
        grid.get_by_role("searchbox").fill(text)
        expect_range(grid, 1, 1, 1)
        expect_first(grid, "userId", ["u998"])
    context.close()


def test_columns_are_as_wide_as_what_they_show_and_tell_the_rest(page: Page, running: Running, board: Board) -> None:
    reason = "age: expected a bigint, found a text that is much longer than any column of a table should ever be, " * 3
    rejects = {f"users-0-{n}": ["users", 0, n, reason, '{"age":"x"}', stamp(n)] for n in range(3)}
    board.write(str(board.live), rejects, "rejects_ui")
    log_in(page, running, "/table/rejects_ui")
    grid = table(page, "rejects_ui")
    expect_first(grid, "offset", ["2", "1", "0"])

    def width(column: str) -> float:
        box = grid.locator(f'.ag-row[row-index="0"] [col-id="{column}"]').bounding_box()
        assert box is not None
        return box["width"]

    assert width("reason") > 2 * width("partition")
    cell = grid.locator('.ag-row[row-index="0"] [col-id="reason"]')
    cell.hover()
    expect(cell).to_have_attribute("title", reason)
    time = grid.locator('.ag-row[row-index="0"] [col-id="ts"]')
    time.hover()
    expect(time).to_have_attribute("title", re.compile(re.escape(stamp(2))))
