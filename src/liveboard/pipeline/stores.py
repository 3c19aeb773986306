"""Where checkpoints can be beside a local disk, and what Spark has to know for it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from liveboard.config.settings import StorageSettings
from liveboard.install import libraries

_MANAGERS = "org.apache.spark.sql.execution.streaming.checkpointing"
_MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
_S3A = "spark.hadoop.fs.s3a"
_KEYS_PROVIDER = "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider"


def scheme(storage: StorageSettings) -> str:
    """The kind of file system that checkpoints are on."""
    before, found, _ = storage.checkpoints.partition("://")
    return before if found else "file"


def jars(storage: StorageSettings, show: Callable[[str], None]) -> list[Path]:
    """What Java needs for it; fetched if it is not there yet."""
    return libraries.extra_jars("s3", show) if scheme(storage) == "s3a" else []


def conf(storage: StorageSettings) -> dict[str, str]:
    """Settings of Spark: the file that ends a batch must be there as a whole or not at all, and be written once."""
    match scheme(storage):
        case "file":
            # The default manager starts five processes (chmod, readlink) for every file that it writes to a local
            # disk, and the queries stand still for that long at every checkpoint.
            return {_MANAGER: f"{_MANAGERS}.FileSystemBasedCheckpointFileManager"}
        case "s3a":
            return _s3(storage)
        case _:
            # It writes under another name and renames, unless the file is there. That is one step on HDFS, and on Azure
            # with a hierarchical namespace. Google's connectors copy or move the object on the condition that there is
            # none of that name; what S3 has below is not for them, since they cannot give up a file that was begun.
            return {_MANAGER: f"{_MANAGERS}.FileContextBasedCheckpointFileManager"}


def _s3(storage: StorageSettings) -> dict[str, str]:
    s3 = storage.s3
    given = {
        "endpoint": s3.endpoint,
        "endpoint.region": s3.region,
        "access.key": s3.access_key.reveal(),
        "secret.key": s3.secret_key.reveal(),
        "aws.credentials.provider": _KEYS_PROVIDER if s3.access_key else "",
        # Those that are not Amazon's seldom have a name for each bucket.
        "path.style.access": "true" if s3.endpoint else "",
        # The other way takes the SDK's own client over Netty, which is made for Netty 4.1 and on Spark's 4.2 takes
        # "100 Continue" for an answer.
        "optimized.copy.from.local.enabled": "false",
        # Files are read once, from their beginning. The other streams are for tables.
        "input.stream.type": "classic",
    }
    # Renaming is copying there. This one writes to the file's own name, and S3 shows it when it is whole.
    manager = "org.apache.spark.internal.io.cloud.AbortableStreamBasedCheckpointFileManager"
    return {_MANAGER: manager, **{f"{_S3A}.{name}": value for name, value in given.items() if value}}
