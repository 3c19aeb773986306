"""Programs that tests run and pip does not install: those that are there, or Debian's packages."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from pathlib import Path


def find(*names: str) -> str | None:
    """The first of these programs that is there."""
    places = f"{os.environ.get('PATH', '')}:/usr/sbin"
    return next((found for name in names if (found := shutil.which(name, path=places))), None)


def install(package: str) -> None:
    """Tries to install a package; whoever needs it looks whether it is there."""
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        return
    print(f"installing Debian's {package}, once ...", flush=True)
    # Tests run in several processes, and apt fails beside another one.
    with Path(tempfile.gettempdir(), "liveboard-apt.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for command in (["apt-get", "update"], ["apt-get", "install", "--yes", "--no-install-recommends", package]):
            subprocess.run(
                command, check=False, capture_output=True, env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
            )


def provide(name: str, package: str, what: str) -> str:
    """The program, installed if need be; a RuntimeError that says what wants it."""
    if not find(name):
        install(package)
    if found := find(name):
        return found
    raise RuntimeError(
        f"{what}: expected {name} on the PATH, found none and no way to install it; try `apt install {package}`"
    )
