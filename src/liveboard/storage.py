"""The storage directory: one owner at a time."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from liveboard.errors import LiveboardError


@contextmanager
def owned(directory: Path, owner: str) -> Iterator[Path]:
    """Holds the directory, made if need be, and gives its whole path; a second owner gets a LiveboardError."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        lock = (directory / "lock").open("a+")
    except OSError as error:
        raise LiveboardError(
            f"storage.dir: expected a directory that can be written at {directory}, found: {error.strerror}"
        ) from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            raise LiveboardError(
                f"{directory} is in use by another {owner} (process {lock.read().strip() or 'unknown'}): "
                "stop that one or set another storage.dir"
            ) from None
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        yield directory.resolve()
