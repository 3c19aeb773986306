"""The browser of the tests: one that is there, Playwright's own, or Debian's package where that can be installed."""

from __future__ import annotations

import os
from pathlib import Path

import debian
from playwright.sync_api import Browser, Playwright

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_SENTENCE = (
    "the browser tests: expected Chromium or Chrome on the PATH, found none and no way to install one; install one, "
    "for example with `apt install chromium` or `.venv/bin/playwright install chromium`"
)


def launch(playwright: Playwright) -> Browser:
    """A browser without a window."""
    # Root, as in most containers, has no sandbox.
    options = ["--no-sandbox"] if os.geteuid() == 0 else []
    return playwright.chromium.launch(
        executable_path=_find(playwright), args=options, ignore_default_args=["--hide-scrollbars"]
    )


def _find(playwright: Playwright) -> str:
    if found := debian.find(*_NAMES):
        return found
    own = Path(playwright.chromium.executable_path)
    if own.exists():
        return str(own)
    debian.install("chromium")
    if found := debian.find(*_NAMES):
        return found
    raise RuntimeError(_SENTENCE)
