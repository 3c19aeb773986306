"""The storage directory: one process at a time, and the id of whoever has it."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from liveboard.contract.errors import LiveboardError

_ID_FILE = "id"


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


def storage_id(directory: Path) -> str:
    """The id of the storage that is kept in this directory, the same at every start."""
    file = directory / _ID_FILE
    if not file.exists():
        made = file.with_suffix(".new")
        made.write_text(uuid4().hex)
        made.replace(file)
    return file.read_text()
