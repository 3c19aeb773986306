"""What the browser tests share: a board with rows, and a viewer who logs in and looks."""

from __future__ import annotations

from typing import Any

from live import KEY, Board, Running
from playwright.sync_api import Locator, Page, expect

from liveboard.contract.schema import REJECT_COLUMNS, TS, Column

USERS = (Column("userId", "string"), Column("name", "string"), Column("age", "bigint"), TS)
TABLES = {"users_ui": USERS, "final_ui": (*USERS[:3], Column("balance", "double"), TS), "rejects_ui": REJECT_COLUMNS}
DESCRIBED = {"sources": {"users": {"table": "users_ui"}}, "joins": {}}
COUNT = 1_000
# From now on the page remembers in window.fewest how few rows one could ever see in the emptiest of its grids.
COUNT_FEWEST_ROWS = """() => {
    window.fewest = Infinity;
    // Where it is going to be: one that slides out of view does not count, and one that is not to be seen yet neither.
    const isShown = (row, view) => {
        const top = new DOMMatrix(row.style.transform).m42 - view.scrollTop;
        return top >= 0 && top < view.clientHeight && getComputedStyle(row).opacity > 0.5;
    };
    const look = () => {
        for (const view of document.querySelectorAll('app-live-table .ag-grid-viewport')) {
            const rows = [...view.querySelectorAll('.ag-row')].filter(row => isShown(row, view));
            window.fewest = Math.min(window.fewest, rows.length);
        }
        requestAnimationFrame(look);
    };
    look();
}"""


def stamp(number: int) -> str:
    """A time in a row."""
    return f"2026-01-31T09:{number // 60 % 60:02d}:{number % 60:02d}.000000Z"


def user(number: int, age: int | None = None) -> list[Any]:
    """A row of users_ui; the ages of the first hundred are all different."""
    return [f"u{number}", f"User {number}", number * 37 % 101 if age is None else age, stamp(number)]


def fill(board: Board, count: int = COUNT) -> str:
    """A new generation, with its rows, that is live from now on."""
    generation = board.build(TABLES, fingerprint=DESCRIBED)
    board.write(generation, {f"0-{n}": user(n) for n in range(count)})
    joined = {f"0-{n}": [*user(n)[:3], n / 4, stamp(n)] for n in range(count)}
    board.write(generation, joined, "final_ui")
    board.switch(generation)
    return generation


def log_in(page: Page, running: Running, path: str = "/", key: str = KEY) -> None:
    """Opens the page and types the key."""
    page.goto(f"http://127.0.0.1:{running.port}{path}")
    page.get_by_label("Key").fill(key)
    page.keyboard.press("Enter")


def table(page: Page, name: str = "users_ui") -> Locator:
    """A table's component."""
    return page.locator("app-live-table").filter(has=page.get_by_role("heading", name=name, exact=True))


def expect_first(grid: Locator, column: str, texts: list[str]) -> None:
    """Waits until the column begins with these cells."""
    for place, text in enumerate(texts):
        expect(grid.locator(f'.ag-row[row-index="{place}"] [col-id="{column}"]')).to_have_text(text)


def expect_range(grid: Locator, first: int, last: int, total: int) -> None:
    """Waits until the pager says which rows there are, counted from 1."""
    expect(grid.locator(".range")).to_have_text(f"rows {first:,}\N{EN DASH}{last:,} of {total:,}")


def scroll_to_end(grid: Locator) -> None:
    """Turns the wheel over the grid, again where one turn was not enough, until the grid is at its very end."""
    scrolled = """(view) => view.scrollTop > 0 && view.scrollTop + view.clientHeight >= view.scrollHeight - 1"""
    view = grid.locator(".ag-grid-viewport")
    for step in range(400):
        if step % 40 == 0:
            view.hover()
            view.page.mouse.wheel(0, 20_000)
        if view.evaluate(scrolled):
            return
        view.page.wait_for_timeout(50)
    raise AssertionError("expected the grid at its end")
