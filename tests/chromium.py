"""The browser of the tests: one that is there, Playwright's own, or Debian's package where that can be installed."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

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
    if found := _on_path():
        return found
    own = Path(playwright.chromium.executable_path)
    if own.exists():
        return str(own)
    if os.geteuid() == 0 and shutil.which("apt-get"):
        print("installing Debian's chromium, once ...", flush=True)
        for command in (["apt-get", "update"], ["apt-get", "install", "--yes", "--no-install-recommends", "chromium"]):
            subprocess.run(
                command, check=False, capture_output=True, env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
            )
        if found := _on_path():
            return found
    raise RuntimeError(_SENTENCE)


def _on_path() -> str | None:
    return next((found for name in _NAMES if (found := shutil.which(name))), None)
