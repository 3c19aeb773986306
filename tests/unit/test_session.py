from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from liveboard.config import SparkSettings
from liveboard.contract.errors import LiveboardError
from liveboard.pipeline import session

_PROGRAM = """
import sys
from py4j.protocol import INPUT_CONVERTER
from liveboard.pipeline.session import leave_out_numpy
leave_out_numpy()
for converter in INPUT_CONVERTER:
    converter.can_convert("a value for Java")
print(sorted({"numpy", "pandas", "pyarrow"} & sys.modules.keys()))
"""


def test_values_go_to_java_without_pandas() -> None:
    done = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_java_that_does_not_start_says_where_to_look(tmp_path: Path) -> None:
    settings = SparkSettings(conf={"spark.driver.extraJavaOptions": "-XX:+NoSuchOption"})
    with pytest.raises(LiveboardError, match=r"it ended with exit code 1: see .*spark\.out"):
        session.create(settings, tmp_path)
    assert "NoSuchOption" in (tmp_path / "spark.out").read_text()
