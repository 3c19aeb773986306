from __future__ import annotations

import subprocess
import sys

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
