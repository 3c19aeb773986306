"""What the wheel has in it, so that neither Node nor make is needed where it is installed."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

import installed


def test_the_wheel_has_the_page_and_the_list_of_java_libraries(tmp_path: Path) -> None:
    with zipfile.ZipFile(installed.build_wheel(tmp_path)) as wheel:
        names = set(wheel.namelist())
        page = wheel.read("liveboard/page/index.html").decode()
    assert {"liveboard/ivy.xml", "liveboard/contract/frames.json"} <= names
    scripts = re.findall(r'(?:src|href)="([\w.-]+\.(?:js|css))"', page)
    assert scripts
    assert [name for name in scripts if f"liveboard/page/{name}" not in names] == []
    assert [name for name in names if not name.startswith(("liveboard/", "liveboard-"))] == []
