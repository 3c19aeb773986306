"""The contract is a leaf: both halves import it, and it imports nothing of ours."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from liveboard import contract

MODULES = sorted(Path(contract.__path__[0]).glob("*.py"))


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.stem)
def test_a_module_of_the_contract_imports_nothing_else_of_ours(module: Path) -> None:
    ours = [name for name in _imported(module) if name.partition(".")[0] == "liveboard"]
    assert [name for name in ours if not name.startswith("liveboard.contract.")] == []


def _imported(module: Path) -> Iterator[str]:
    """Every name that is imported, also inside functions, as `package.module.name`."""
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            package = "liveboard.contract" if node.level == 1 else "liveboard" if node.level else ""
            yield from (".".join(filter(None, [package, node.module, name.name])) for name in node.names)
