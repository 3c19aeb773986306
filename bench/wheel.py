"""`liveboard up` from the wheel in an environment of its own, until its page shows rows in Chromium."""

from __future__ import annotations

import re
import shutil
import time
from pathlib import Path
from tempfile import mkdtemp

import chromium
import installed
from playwright.sync_api import Browser, sync_playwright
from processes import say
from report import Figure, Target
from stage import PATIENCE_S, Stage
from whole import up_in

from liveboard.commands import access
from liveboard.commands.access import Access
from liveboard.install import libraries

_LINK = re.compile(r"live tables at (http://\S+) with the key (\S+)")
_CACHES = "*.aot"


def wheel(stage: Stage) -> list[Figure]:
    """The Java libraries are there, as after `python -m liveboard.install`; first without Java's caches, then with."""
    directory = Path(mkdtemp(prefix="wheel-", dir=stage.directory))
    liveboard = installed.from_wheel(directory)
    jars = liveboard.parents[1] / "share" / "liveboard" / "jars"
    with sync_playwright() as playwright:
        browser = chromium.launch(playwright)
        figures = _up(browser, liveboard, directory / "with", "with Java's caches")
        jars.unlink()
        shutil.copytree(libraries.directory(), jars, ignore=shutil.ignore_patterns(_CACHES))
        figures += _up(browser, liveboard, directory / "without", "without Java's caches")
        browser.close()
    return figures


def _up(browser: Browser, liveboard: Path, directory: Path, how: str) -> list[Figure]:
    directory.mkdir()
    say(f"liveboard up, {how}")
    began = time.monotonic()
    with up_in(directory, liveboard=[str(liveboard)]) as up:
        up.until(lambda: _LINK.search(up.said()))
        link_s = time.monotonic() - began
        url, key = _LINK.findall(up.said())[0]
        page = browser.new_context().new_page()
        page.goto(access.login_link(Access(url, key)))
        page.locator(".ag-row").first.wait_for(timeout=PATIENCE_S * 1000)
        rows_s = time.monotonic() - began
        page.context.close()
    return [
        Figure(f"up from the wheel, {how}, until the link", "s", link_s),
        Figure(f"up from the wheel, {how}, until rows are on the screen", "s", rows_s, target=Target(20)),
    ]
