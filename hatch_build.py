"""Puts the built page into the wheel, where there is one."""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class PageHook(BuildHookInterface):  # type: ignore[type-arg]
    """Found by hatchling."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        page = Path(self.root, "web", "app", "dist")
        if version != "editable" and (page / "index.html").is_file():
            build_data["force_include"][str(page)] = "liveboard/page"
