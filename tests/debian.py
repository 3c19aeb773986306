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
    _apt(["update"], ["install", "--yes", "--no-install-recommends", package])


def unpack(name: str, package: str, what: str, into: Path) -> str:
    """The program, taken out of the package if need be: installed, some packages start services."""
    if found := find(name):
        return found
    if os.geteuid() == 0 and shutil.which("apt-get"):
        _apt(["update"], ["download", package], cwd=into)
        for archive in into.glob("*.deb"):
            subprocess.run(["dpkg", "-x", archive, into], check=True)
    if (program := into / "usr/bin" / name).exists():
        return str(program)
    raise _missing(name, package, what)


def provide(name: str, package: str, what: str) -> str:
    """The program, installed if need be; a RuntimeError that says what wants it."""
    if not find(name):
        install(package)
    if found := find(name):
        return found
    raise _missing(name, package, what)


def _apt(*commands: list[str], cwd: Path | None = None) -> None:
    # Tests run in several processes, and apt fails beside another one.
    with Path(tempfile.gettempdir(), "liveboard-apt.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for command in commands:
            environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
            subprocess.run(["apt-get", *command], check=False, capture_output=True, env=environment, cwd=cwd)


def _missing(name: str, package: str, what: str) -> RuntimeError:
    return RuntimeError(
        f"{what}: expected {name} on the PATH, found none and no way to install it; try `apt install {package}`"
    )
