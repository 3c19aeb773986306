"""liveboard as pip installs it: the wheel, in an empty virtual environment."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

from liveboard.install import libraries

_ROOT = Path(__file__).parents[1]


def build_wheel(into: Path) -> Path:
    """The wheel of this checkout, with the page that `make setup` has built."""
    _run(sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(into))
    [wheel] = into.glob("liveboard-*.whl")
    return wheel


def from_wheel(directory: Path) -> Path:
    """The program `liveboard` in an environment that has nothing of this checkout.

    What liveboard needs is taken from where these tests run, since to install it again would take minutes.
    """
    wheel, environment = build_wheel(directory / "wheel"), directory / "environment"
    venv.create(environment, with_pip=False, symlinks=True)
    python = environment / "bin" / "python"
    _run(sys.executable, "-m", "pip", "--python", str(python), "install", "--no-deps", "--no-index", str(wheel))
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(environment)}))
    # A path in such a file is searched for modules; the file there that leads to the checkout is not read.
    (packages / "needed.pth").write_text(sysconfig.get_path("purelib"))
    share = environment / "share" / "liveboard"
    share.mkdir(parents=True)
    (share / "jars").symlink_to(libraries.directory())
    return environment / "bin" / "liveboard"


def _run(*command: str) -> None:
    done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
