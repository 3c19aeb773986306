"""Where generations keep their checkpoints: one directory each, on any file system that Spark can write to."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from liveboard.contract.names import is_generation


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
