"""Where generations keep their checkpoints: one directory each, on any file system that Spark can write to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from liveboard.contract.errors import LiveboardError
from liveboard.contract.names import is_generation
from liveboard.kafka.admin import Offsets

# In a file of offsets: after the format's version and the settings comes a line for each source, and there is one.
_OFFSETS = 2


def local_address(directory: Path) -> str:
    """A directory of this machine as Hadoop reads it: as it is, while `Path.as_uri` writes a blank as `%20`."""
    return f"file://{directory.absolute()}"


class Damaged(LiveboardError):
    """A checkpoint holds something else than Spark has written to it."""


class Checkpoints:
    """The checkpoints under one address (`file:///…`, `s3a://…`), reached as Spark reaches them."""

    def __init__(self, spark: SparkSession, root: str) -> None:
        self._root = root.rstrip("/")
        self._jvm: Any = spark.sparkContext._jvm
        configuration = spark.sparkContext._jsc.hadoopConfiguration()
        self._files = self._path(self._root).getFileSystem(configuration)

    def where(self, generation: str) -> str:
        """The address of a generation's checkpoint, whether or not there is one."""
        return f"{self._root}/{generation}"

    def exists(self, generation: str) -> bool:
        """Whether the generation has a checkpoint to go on from."""
        return bool(self._files.exists(self._path(f"{self.where(generation)}/offsets")))

    def has_batch(self, generation: str) -> bool:
        """Whether a batch is on record there, so that a stream goes on instead of beginning anew."""
        return any(name.isdigit() for name in self._names(f"{self.where(generation)}/offsets"))

    def read_up_to(self, generation: str) -> Offsets | None:
        """Where a stream goes on from: after the last batch that it has finished; None where there is none."""
        path = self._newest_offsets(generation)
        if not path:
            return None
        try:
            offsets: Offsets = json.loads(self._lines(path)[_OFFSETS])
        except (ValueError, IndexError) as error:
            raise Damaged(f"{path}: expected the offsets of a batch, found something else ({error})") from None
        return offsets

    def go_on_from(self, generation: str, offsets: Offsets) -> None:
        """Has the stream go on from other offsets than those after the last batch that it has finished.

        In Real-Time Mode, Spark waits for ever for records that are gone.
        """
        path = self._newest_offsets(generation)
        lines = self._lines(path)
        lines[_OFFSETS] = json.dumps(offsets)
        file = self._files.create(path, True)
        try:
            self._jvm.org.apache.commons.io.IOUtils.write("\n".join(lines), file, "UTF-8")
        finally:
            file.close()

    def _newest_offsets(self, generation: str) -> Any:
        """The file of the last batch that was finished."""
        finished = [name for name in self._names(f"{self.where(generation)}/commits") if name.isdigit()]
        return self._path(f"{self.where(generation)}/offsets/{max(finished, key=int)}") if finished else None

    def _lines(self, path: Any) -> list[str]:
        file = self._files.open(path)
        try:
            return str(self._jvm.org.apache.commons.io.IOUtils.toString(file, "UTF-8")).splitlines()
        finally:
            file.close()

    def generations(self) -> set[str]:
        """All that have left anything."""
        return {name for name in self._names(self._root) if is_generation(name)}

    def remove(self, generation: str) -> None:
        """Deletes all that the generation has left, if there is anything."""
        self._files.delete(self._path(self.where(generation)), True)

    def _names(self, directory: str) -> list[str]:
        path = self._path(directory)
        found = self._files.listStatus(path) if self._files.exists(path) else []
        return [str(file.getPath().getName()) for file in found]

    def _path(self, address: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(address)
