"""Disks that can be full and clocks that can jump, for processes of a test."""

from __future__ import annotations

import errno
import os
import subprocess
from pathlib import Path

_SHIFTED = Path(__file__).parent / "shifted"


class Disk:
    """A directory, on a disk of its own where we may mount one."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self._ballast = place / "ballast"
        place.mkdir()

    def mount(self, size: str) -> None:
        """Gives it so much space."""
        command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(self.place)]
        subprocess.run(command, stderr=subprocess.DEVNULL, check=False)

    def fill(self) -> None:
        """Leaves nothing free."""
        while self.place.is_mount() and (free := os.statvfs(self.place)).f_bavail:
            try:
                with self._ballast.open("wb") as file:
                    os.posix_fallocate(file.fileno(), 0, free.f_bavail * free.f_frsize)
            except OSError as error:
                # Whoever uses the disk has written meanwhile.
                if error.errno != errno.ENOSPC:
                    raise
            else:
                return

    def clear(self) -> None:
        """Gives the space back."""
        self._ballast.unlink(missing_ok=True)

    def unmount(self) -> None:
        """As it was; what is still open there goes with its processes."""
        if self.place.is_mount():
            subprocess.run(["umount", "--lazy", str(self.place)], check=True)


class Clock:
    """The time of day that a Python process sees; clocks that only go forwards stay as they are.

    Java and librdkafka keep theirs. Debian's libfaketime would shift all of them, but under it a Kafka broker does not
    come up within two minutes, and Python's `sleep` fails when the clock is set back.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self.set(0)
        path = [str(_SHIFTED), *filter(None, [os.environ.get("PYTHONPATH")])]
        self.environment = {"PYTHONPATH": os.pathsep.join(path), "TESTS_CLOCK_FILE": str(file)}

    def set(self, seconds: int) -> None:
        """So much later, or earlier, than it is."""
        self._file.write_text(f"{seconds:+d}\n")
