"""Pictures of the board of the running demo, for the README and the documentation."""

from __future__ import annotations

import base64
import json
import sys
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple
from urllib.parse import urlencode

from playwright.sync_api import Page, sync_playwright

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import chromium

from liveboard import config
from liveboard.commands import access
from liveboard.commands.access import Access

FOLDER = Path(__file__).parent
PHONE_WIDTH = 500
# Sparklines and the time from Kafka to the screen need some seconds of a life.
SETTLE_MS = 12_000
PATIENCE_MS = 60_000


class Picture(NamedTuple):
    """What is to be seen, and what is done before."""

    scheme: Literal["light", "dark"]
    width: int
    height: int
    path: str = "/"
    prepare: Callable[[Page], None] | None = None


def rule(operator: str, value: str = "", **looks: Any) -> dict[str, Any]:
    """A rule of a column."""
    return {"operator": operator, "value": value, "colour": "", "bold": False, "icon": "", "bar": False, **looks}


def card(kind: str, table: str, column: str = "", **more: Any) -> dict[str, Any]:
    """A card of a board."""
    sizes = {"table": (6, 4), "number": (3, 1), "top": (3, 3)}
    width, height = sizes.get(kind, (6, 3))
    plain = {"measure": "rows", "query": "", "view": "", "width": width, "height": height}
    return {"kind": kind, "table": table, "column": column, **plain, **more}


def encoded(view: dict[str, Any]) -> str:
    """A view as addresses have it."""
    return "1" + base64.urlsafe_b64encode(json.dumps(view, ensure_ascii=False).encode()).decode().rstrip("=")


RULES = encoded(
    {
        "formats": {"balance": {"kind": "money", "currency": "USD"}, "ts": {"kind": "relative"}},
        "rules": {
            "balance": [
                rule("always", bar=True),
                rule(">", "100000", bar=True, colour="good", bold=True),
                rule("<", "1000", colour="bad", icon="▼"),
            ],
            "accountType": [
                rule("=", "mortgage", colour="warn", icon="●"),
                rule("=", "savings", colour="good", icon="●"),
                rule("=", "brokerage", colour="accent", icon="●"),
            ],
        },
    }
)
BOARDS = {
    "Money": [
        card("number", "accounts_ui", "balance", measure="sum"),
        card("number", "accounts_ui", "balance", measure="mean"),
        card("number", "accounts_ui", "balance", measure="greatest"),
        card("number", "accounts_ui"),
        card("line", "accounts_ui", "balance"),
        card("distribution", "accounts_ui", "balance", width=3),
        card("top", "accounts_ui", "accountType"),
        card("table", "user_account", width=12, view=RULES),
    ],
    "People": [
        card("number", "users_ui"),
        card("number", "users_ui", "age", measure="mean"),
        card("table", "users_ui"),
        card("distribution", "users_ui", "age"),
    ],
}


def open_a_row(page: Page) -> None:
    """A row with the records behind it, beside the table."""
    page.locator('app-live-table .ag-row[row-index="4"] .ag-cell').first.click()
    page.locator("app-row-detail pre").first.wait_for()


PICTURES = {
    "board-light": Picture("light", 1440, 900),
    "board-dark": Picture("dark", 1440, 900),
    "board-phone": Picture("dark", 390, 844),
    "row-detail": Picture("light", 1440, 900, path="/table/user_account", prepare=open_a_row),
    "rules": Picture("dark", 1440, 900, path=f"/table/user_account?view.user_account={RULES}"),
    "boards": Picture("light", 1440, 900, path="/?board=Money"),
    "boards-dark": Picture("dark", 1440, 900, path="/?board=Money"),
}


def main() -> None:
    """Writes the pictures."""
    server = access.recall(config.load(None))
    if not server.url or not server.key:
        sys.exit("expected a running board, found none: run `make demo` in another terminal first")
    take(server, FOLDER, PICTURES)


def take(server: Access, folder: Path, pictures: dict[str, Picture]) -> None:
    """Writes these pictures of a running board into a folder."""
    with sync_playwright() as playwright, boards(server):
        browser = chromium.launch(playwright)
        for name, (scheme, width, height, path, prepare) in pictures.items():
            context = browser.new_context(
                viewport={"width": width, "height": height},
                color_scheme=scheme,
                is_mobile=width < PHONE_WIDTH,
                has_touch=width < PHONE_WIDTH,
            )
            context.set_default_timeout(PATIENCE_MS)
            page = context.new_page()
            page.goto(access.login_link(server))
            page.locator(".ag-row").first.wait_for()
            if path != "/":
                page.goto(f"{server.url}{path}")
                page.locator(".ag-row").first.wait_for()
            page.wait_for_timeout(SETTLE_MS)
            if prepare:
                prepare(page)
                page.wait_for_timeout(1_000)
            page.screenshot(path=folder / f"{name}.png")
            print(folder / f"{name}.png", flush=True)
            context.close()
        browser.close()


@contextmanager
def boards(server: Access) -> Iterator[None]:
    """The boards of the pictures, for as long as they are needed."""

    def ask(method: str, name: str, body: dict[str, Any] | None = None) -> None:
        place = urlencode({"kind": "board", "table": "", "name": name, "shared": "false"})
        headers = {"Authorization": f"Bearer {server.key}"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{server.url}/api/views?{place}", data, headers, method=method)
        urllib.request.urlopen(request).close()

    for name, cards in BOARDS.items():
        ask("PUT", name, {"tables": sorted({each["table"] for each in cards}), "state": cards})
    try:
        yield
    finally:
        for name in BOARDS:
            ask("DELETE", name)


if __name__ == "__main__":
    main()
