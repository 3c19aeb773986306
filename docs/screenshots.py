"""Pictures of the board of the running demo, for the README."""

from __future__ import annotations

import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import chromium

from liveboard import config
from liveboard.commands import access

FOLDER = Path(__file__).parent
PHONE_WIDTH = 500
SIZES = {"board-light": ("light", 1440, 900), "board-dark": ("dark", 1440, 900), "board-phone": ("dark", 390, 844)}


def main() -> None:
    """Writes the pictures."""
    server = access.recall(config.load(None))
    if not server.url or not server.key:
        sys.exit("expected a running board, found none: run `make demo` in another terminal first")
    with sync_playwright() as playwright:
        browser = chromium.launch(playwright)
        for name, (scheme, width, height) in SIZES.items():
            page = browser.new_page(
                viewport={"width": width, "height": height},
                color_scheme=scheme,  # type: ignore[arg-type]
                is_mobile=width < PHONE_WIDTH,
                has_touch=width < PHONE_WIDTH,
            )
            page.goto(access.login_link(server))
            page.locator(".ag-row").first.wait_for()
            page.locator(".tempo", has_text="old").first.wait_for()
            page.screenshot(path=FOLDER / f"{name}.png")
            print(FOLDER / f"{name}.png")
        browser.close()


if __name__ == "__main__":
    main()
