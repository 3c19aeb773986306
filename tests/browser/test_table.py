"""What a viewer does with one table, in a real browser, against what plain Python says about the same rows."""

from __future__ import annotations

import csv
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
from live import Running
from looking import COUNT, expect_first, expect_range, log_in, stamp, table, user
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect

pytestmark = pytest.mark.integration

PEOPLE = [user(number) for number in range(COUNT)]
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
    expect_range(grid, 0, min(300, len(found)) - 1, len(found))
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
    expect_first(grid, "ts", ["2026-01-31 14:30:00.000"])
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
    found = sorted((row for row in PEOPLE if row[2] > 50), key=lambda row: row[2])
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
    assert copied(page) == "User 2"
    grid.get_by_role("button", name="Columns").click()
    page.get_by_role("checkbox", name="ts").uncheck()
    page.keyboard.press("Escape")
    expect(grid.get_by_role("columnheader", name="ts")).to_have_count(0)
    grid.locator('.ag-row[row-index="4"] [col-id="name"]').click(modifiers=["ControlOrMeta"])
    page.keyboard.press("Control+c")
    expect(grid.get_by_text("Copied 2 rows.")).to_be_visible()
    assert copied(page) == "userId\tname\tage\nu2\tUser 2\t74\nu4\tUser 4\t47"
    grid.get_by_role("button", name="Columns").click()
    page.get_by_role("checkbox", name="ts").check()
    expect(grid.get_by_role("columnheader", name="ts")).to_be_visible()


def copied(page: Page) -> str:
    """What is on the clipboard."""
    text: str = page.evaluate("navigator.clipboard.readText()")
    return text
