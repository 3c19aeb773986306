"""Where the checkpoints of a board are, as Hadoop reads it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from liveboard.config import Settings, StorageSettings
from liveboard.orchestrator.service import checkpoint_root

ADMIN = cast(Any, SimpleNamespace(cluster_id=lambda: "c1"))
STORAGE = Path("/srv/my böard 100%20/pipeline")


@pytest.mark.parametrize(
    ("checkpoints", "root"),
    [
        ("", "file:///srv/my böard 100%20/pipeline"),
        ("/mnt/my böard", "file:///mnt/my böard/liveboard-c1"),
        ("file:///mnt/shared/", "file:///mnt/shared/liveboard-c1"),
        ("s3a://bucket/boards", "s3a://bucket/boards/liveboard-c1"),
    ],
)
def test_a_directory_has_the_name_in_its_address_that_it_has_on_disk(checkpoints: str, root: str) -> None:
    settings = Settings(storage=StorageSettings(checkpoints=checkpoints))
    assert checkpoint_root(settings, STORAGE, ADMIN) == root
