"""What the browser tests share: a board with rows, and a viewer who logs in."""

from __future__ import annotations

from typing import Any

from live import KEY, Board, Running
from playwright.sync_api import Page

from liveboard.contract.schema import REJECT_COLUMNS, TS, Column

USERS = (Column("userId", "string"), Column("name", "string"), Column("age", "bigint"), TS)
TABLES = {"users_ui": USERS, "final_ui": (*USERS[:3], Column("balance", "double"), TS), "rejects_ui": REJECT_COLUMNS}
COUNT = 1_000


def stamp(number: int) -> str:
    """A time in a row."""
    return f"2026-01-31T09:{number // 60 % 60:02d}:{number % 60:02d}.000000Z"


def user(number: int, age: int | None = None) -> list[Any]:
    """A row of users_ui; the ages of the first hundred are all different."""
    return [f"u{number}", f"User {number}", number * 37 % 101 if age is None else age, stamp(number)]


def fill(board: Board, count: int = COUNT) -> str:
    """A new generation, with its rows, that is live from now on."""
    generation = board.build(TABLES)
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
