"""The documents name everything that a user can set, run, ask or look at, and nothing that is not there."""

from __future__ import annotations

import dataclasses
import json
import re
import subprocess
import sys
import tomllib
import typing
from pathlib import Path
from typing import Any

import pytest

from liveboard.commands.doctor import CHECKS
from liveboard.config import Duration, Secret, Settings, default_board, documented_keys, values
from liveboard.config.board import DEFAULT_BOARD
from liveboard.contract.names import EXPORT_FORMATS
from liveboard.contract.status import Phase, State
from liveboard.contract.tables import all_columns
from liveboard.contract.types import TYPES
from liveboard.pipeline.joins import KINDS

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob(".github/**/*.md")])
README = (ROOT / "README.md").read_text()
SETTINGS = (ROOT / "docs/settings.md").read_text()
OPERATIONS = (ROOT / "docs/operations.md").read_text()
BEHAVIOUR = (ROOT / "docs/behaviour.md").read_text()
GLOSSARY = (ROOT / "docs/glossary.md").read_text()
ARCHITECTURE = (ROOT / "ARCHITECTURE.md").read_text()
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text()
PIPELINE_METRICS = (ROOT / "src/liveboard/orchestrator/metrics.py").read_text()
SERVING = "".join(file.read_text() for file in sorted((ROOT / "src/liveboard/serving").glob("*.py")))

SETTING = re.compile(r"`((?:kafka|spark|pipeline|server|storage|control|board)(?:\.[a-z_<>]+)+)`")
FILES_LIKE_SETTINGS = {"server.json", "kafka.address", "pipeline.out"}

OF_SPARK = {
    f"spark.{name}"
    for name in (
        "cores.max",
        "default.parallelism",
        "driver.host",
        "driver.memory",
        "executor.cores",
        "executor.instances",
        "hadoop.fs.gs.impl",
        "jars",
        "kubernetes.container.image",
        "sql.shuffle.partitions",
        "yarn.archive",
    )
}


def test_a_stranger_reads_the_readme_to_its_end() -> None:
    assert len(README.splitlines()) < 150


def test_every_table_of_the_default_board_is_in_the_readme() -> None:
    assert [table for table in all_columns(default_board()) if f"`{table}`" not in README] == []


@pytest.mark.parametrize("key", documented_keys())
def test_every_setting_has_its_row(key: str) -> None:
    assert len(_rows(SETTINGS, key)) == 1


# The default board has a chapter of its own.
@pytest.mark.parametrize("key", [key for key in documented_keys() if key != "board"])
def test_every_default_is_as_documented(key: str) -> None:
    cell = _rows(SETTINGS, key)[0].split("|")[2].strip()
    value = re.fullmatch("`([^`]*)`", cell)
    found: Any = json.loads(value[1]) if value else None
    match _default(key):
        case dataclasses.MISSING:
            assert not cell
        case Duration() as duration:
            assert Duration.parse(found) == duration
        case values.RowCaps(rows, tables):
            assert (found, tables) == (rows, {})
        case Secret() as secret:
            assert not secret
            assert not cell
        case tuple() as several:
            # Where nothing is the default, words may say what that means.
            assert found == list(several) or not (value or several)
        case (int() | str() | Path() | None | dict()) as one:
            assert found == (str(one) if isinstance(one, Path) else one) or not (value or one)
        case other:
            pytest.fail(f"expected a default of a kind that this test knows, found {other!r}")


def test_the_documented_history_is_what_each_kind_of_join_remembers() -> None:
    usual = {name: kind.usual_history for name, kind in KINDS.items()}
    assert usual["left"] == usual["inner"]
    cell = _rows(SETTINGS, "board.joins.<name>.history")[0].split("|")[2].strip()
    assert cell == f"{usual['left']}, as-of: {usual['asof']}"


@pytest.mark.parametrize("document", [path for path in DOCUMENTS if path.name != "CHANGELOG.md"], ids=lambda p: p.name)
def test_no_document_has_a_setting_that_is_not_there(document: Path) -> None:
    known = set(documented_keys())
    named = {name for name in SETTING.findall(document.read_text()) if not name.startswith("spark.")}
    # A section is no key, but may be named.
    sections = {".".join(key.split(".")[:words]) for key in known for words in range(1, key.count(".") + 1)}
    assert named - known - sections - FILES_LIKE_SETTINGS == set()


def test_the_settings_of_spark_are_those_of_spark_or_ours() -> None:
    ours = {key for key in documented_keys() if key.startswith("spark.")}
    named = {name for name in SETTING.findall(SETTINGS) if name.startswith("spark.")}
    assert named - OF_SPARK == ours


def test_the_documented_default_board_is_the_default_board() -> None:
    written = re.findall(r"```toml\n(.*?)```", SETTINGS, re.DOTALL)[-1]
    assert tomllib.loads(written)["board"] == tomllib.loads(DEFAULT_BOARD)


@pytest.mark.parametrize("word", [*TYPES, *KINDS])
def test_every_type_and_join_is_explained(word: str) -> None:
    assert len(_rows(SETTINGS, word)) == 1


def test_every_command_is_documented() -> None:
    text = subprocess.run(
        [sys.executable, "-m", "liveboard", "--help"], capture_output=True, text=True, check=True
    ).stdout
    commands = set(re.findall(r"^    ([a-z]+) ", text, re.MULTILINE))
    assert commands == set(re.findall(r"^\| `liveboard ([a-z]+)", OPERATIONS, re.MULTILINE))


def test_every_check_of_the_doctor_is_documented() -> None:
    assert [name for name in CHECKS if f"`{name}`" not in OPERATIONS] == []


def test_every_path_of_the_server_is_documented() -> None:
    paths = set(re.findall(r'Route\("(/[a-z][^"]*)"', SERVING))
    assert len(paths) > 10
    assert paths == set(re.findall(r"^\| `(?:GET |POST |PUT |DELETE )?(/[^`]+)`", OPERATIONS, re.MULTILINE))


def test_every_export_format_is_documented() -> None:
    assert [name for name in EXPORT_FORMATS if f"`{name}`" not in OPERATIONS] == []


def test_every_metric_is_documented() -> None:
    metrics = set(re.findall(r'"(liveboard_[a-z_]+)"', SERVING + PIPELINE_METRICS))
    assert len(metrics) > 15
    documented = re.findall(r"^\| `(liveboard_[a-z_]+)`", OPERATIONS, re.MULTILINE)
    assert metrics == {name.removesuffix("_total") for name in documented}


def test_every_phase_and_state_is_documented() -> None:
    assert [phase for phase in Phase if len(_rows(OPERATIONS, phase)) != 1] == []
    assert [word for word in (*Phase, *State) if f"`{word}`" not in GLOSSARY] == []


def test_the_glossary_explains_each_word_once() -> None:
    words = re.findall(r"^\| \*\*([^*]+)\*\* \| .+\. \|$", GLOSSARY, re.MULTILINE)
    assert len(words) == len(set(words)) == GLOSSARY.count("| **")


def test_every_behaviour_that_tests_carry_is_documented() -> None:
    assert set(_carriers()) - set(_behaviours()) == set()


@pytest.mark.parametrize("number", sorted(map(int, re.findall(r"^\*\*B(\d+)\*\*", BEHAVIOUR, re.MULTILINE))))
def test_every_behaviour_names_tests_that_carry_it(number: int) -> None:
    named = {(ROOT / "docs" / link).resolve() for link in _behaviours()[number]}
    assert named
    assert named - _carriers().get(number, set()) == set()


def test_the_map_has_every_module_and_no_other() -> None:
    missing, strangers = {}, {}
    for folder in sorted(path.parent for path in (ROOT / "src/liveboard").glob("*/__init__.py")):
        modules = {path.stem for path in folder.glob("*.py") if not path.stem.startswith("__")}
        named = set(re.findall(r"`([a-z_]+)`", _rows(ARCHITECTURE, f"{folder.name}/")[0]))
        missing[folder.name], strangers[folder.name] = modules - named, named - modules
    assert {folder: names for folder, names in missing.items() if names} == {}
    assert {folder: names for folder, names in strangers.items() if names} == {}


def test_the_map_has_every_document() -> None:
    named = set(re.findall(r"`([a-z-]+)`", _rows(ARCHITECTURE, "docs/")[0]))
    assert named == {path.stem for path in ROOT.glob("docs/*.md")}


@pytest.mark.parametrize("document", [ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md"], ids=lambda path: path.name)
def test_every_file_that_is_named_is_there(document: Path) -> None:
    files = {name for name in re.findall(r"`([a-z_.\-/]+/[a-z_.\-/]*)`", document.read_text()) if "*" not in name}
    assert len(files) > 5
    roots = (ROOT, ROOT / "src/liveboard", ROOT / "tests")
    assert {name for name in files if not any((root / name).exists() for root in roots)} == set()


def test_every_command_of_make_is_documented() -> None:
    commands = set(re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert commands == set(re.findall(r"^\| `make ([a-z-]+)`", CONTRIBUTING, re.MULTILINE))


def test_a_commit_is_checked_as_by_make() -> None:
    recipe = re.search(r"^check:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert recipe
    checks = re.findall(r"\$\(BIN\)/(.+)", recipe[1]) + [
        f"npm{rest}" for rest in re.findall(r"\$\(NPM\)(.+)", recipe[1])
    ]
    hooks = (ROOT / ".pre-commit-config.yaml").read_text()
    assert len(checks) == hooks.count("entry:")
    assert [check for check in checks if check not in hooks] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_leads_somewhere(document: Path) -> None:
    text = re.sub(r"```.*?```", "", document.read_text(), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (document.parent / path).resolve() if path else document
        assert file.is_relative_to(ROOT), target
        assert file.exists(), target
        assert not anchor or anchor in _anchors(file), target


def test_every_dependency_has_its_reason() -> None:
    named = [
        re.split(r"[=<>\[]", line)[0].strip()
        for file in ("requirements.in", "requirements-dev.in")
        for line in (ROOT / file).read_text().splitlines()
        if line.strip() and not line.startswith(("#", "-"))
    ]
    for package in [*sorted((ROOT / "web").glob("*/package.json")), ROOT / "web" / "package.json"]:
        document = json.loads(package.read_text())
        named += [*document.get("dependencies", {}), *document.get("devDependencies", {})]
    assert len(named) > 20
    assert [name for name in named if name not in ARCHITECTURE] == []


def _default(key: str) -> Any:
    """What a setting is that nobody gives; MISSING where it has to be given."""
    if key == "control.topic":
        return Settings().names.control
    cls: Any = Settings
    *way, last = (word for word in key.split(".") if word != "<name>")
    for word in way:
        hint = typing.get_type_hints(cls)[word]
        cls = next(each for each in (hint, *typing.get_args(hint)) if dataclasses.is_dataclass(each))
    [found] = [each for each in dataclasses.fields(cls) if each.name.removesuffix("_") == last]
    return found.default if found.default_factory is dataclasses.MISSING else found.default_factory()


def _rows(document: str, word: str) -> list[str]:
    """The rows of tables that are about the word."""
    return [line for line in document.splitlines() if line.startswith(f"| `{word}` |")]


def _behaviours() -> dict[int, list[str]]:
    """The links under each number of docs/behaviour.md."""
    parts = re.split(r"^\*\*B(\d+)\*\*", BEHAVIOUR, flags=re.MULTILINE)[1:]
    pairs = zip(parts[::2], parts[1::2], strict=True)
    return {int(number): re.findall(r"\]\((\S+\.py)\)", text) for number, text in pairs}


def _carriers() -> dict[int, set[Path]]:
    """The test files that carry each number: `test_b12_…`, B12, or B12 to B18."""
    found: dict[int, set[Path]] = {}
    for file in sorted((ROOT / "tests").glob("*/test_*.py")):
        if file == Path(__file__):
            continue
        text = file.read_text()
        names = " ".join(re.findall(r"def test((?:_b\d+)+)_", text))
        numbers = {int(number) for number in re.findall(r"_b(\d+)", names) + re.findall(r"\bB(\d+)\b", text)}
        for first, last in re.findall(r"\bB(\d+) to B(\d+)", text):
            numbers |= set(range(int(first), int(last) + 1))
        for number in numbers:
            found.setdefault(number, set()).add(file)
    return found


def _anchors(file: Path) -> set[str]:
    """What the headings of a document are called in links."""
    headings = re.findall(r"^#+ (.+)$", file.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
