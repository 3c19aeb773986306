"""Which Java is taken, and what is said when there is none. The Javas are scripts that answer like one."""

import subprocess
import sys
from pathlib import Path

import pytest

from liveboard import java
from liveboard.errors import LiveboardError


@pytest.fixture(autouse=True)
def bare_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "_PLACES", ((tmp_path / "jvm", "*/bin/java"),))
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "prefix"))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))


def make_java(home: Path, version: str, *, complete: bool = True) -> Path:
    """A home whose `java` names its version as the real one does."""
    modules = f"java.base@{version}\n" + (f"jdk.incubator.vector@{version}\n" if complete else "")
    executable = home / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.write_text(
        f"""#!/bin/sh
case "$1" in
  --list-modules) printf '{modules}' ;;
  -XshowSettings:properties)
    printf 'Picked up JAVA_TOOL_OPTIONS: -Da=b\\n    java.home = {home}\\n' >&2
    printf '    java.specification.version = {version}\\n' >&2 ;;
  *) exit 1 ;;
esac
"""
    )
    executable.chmod(0o755)
    return executable


@pytest.mark.parametrize("version", [17, 21])
def test_takes_a_java_that_spark_and_kafka_run_on(tmp_path: Path, version: int) -> None:
    executable = make_java(tmp_path / "jvm" / "some", str(version))
    assert java.find_java() == java.Java(executable, version, tmp_path / "jvm" / "some")


def test_java_home_comes_before_path_and_path_before_the_usual_places(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_places = make_java(tmp_path / "jvm" / "a", "17")
    assert java.find_java().executable == in_places

    on_path = make_java(tmp_path / "somewhere", "17")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(on_path)
    assert java.find_java().home == tmp_path / "somewhere"

    at_home = make_java(tmp_path / "home", "21")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    assert java.find_java().executable == at_home


def test_passes_over_versions_that_do_not_work_and_cut_down_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_java(tmp_path / "home", "25")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    make_java(tmp_path / "jvm" / "a", "11")
    make_java(tmp_path / "jvm" / "b", "21", complete=False)
    good = make_java(tmp_path / "jvm" / "c", "17")
    assert java.find_java().executable == good


def test_finds_the_projects_own(tmp_path: Path) -> None:
    executable = make_java(java.own_directory(), "21")
    assert java.find_java().executable == executable


def test_names_everything_it_found_when_nothing_fits(tmp_path: Path) -> None:
    make_java(tmp_path / "jvm" / "a", "11")
    make_java(tmp_path / "jvm" / "b", "1.8")
    make_java(tmp_path / "jvm" / "c", "25")
    make_java(tmp_path / "jvm" / "d", "21", complete=False)
    broken = make_java(tmp_path / "jvm" / "e", "17")
    broken.write_text("#!/bin/sh\nexit 1\n")
    with pytest.raises(LiveboardError) as raised:
        java.find_java()
    message = str(raised.value)
    assert "need a complete Java 17 or 21" in message
    for found in (
        f"Java 11 in {tmp_path}/jvm/a",
        f"8 in {tmp_path}/jvm/b",
        f"25 in {tmp_path}/jvm/c",
        "a Java 21 without the module jdk.incubator.vector",
        f"{broken} that does not run",
        "install",
    ):
        assert found in message
    assert "\n" not in message


def test_says_so_when_there_is_no_java_at_all() -> None:
    with pytest.raises(LiveboardError, match="this machine has no Java: install one"):
        java.find_java()


def test_a_java_that_cannot_be_downloaded_is_one_sentence_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_java(tmp_path / "jvm" / "a", "25")
    module = tmp_path / "modules" / "jdk.py"
    module.parent.mkdir()
    module.write_text("def install(version, path):\n    raise OSError('Name or service not known')\n")
    monkeypatch.setenv("PYTHONPATH", str(module.parent))
    with pytest.raises(LiveboardError) as raised:
        java.install_java(lambda _: None)
    assert "has Java 25 in" in str(raised.value)
    assert "none could be downloaded (OSError: Name or service not known): install one" in str(raised.value)
    assert "\n" not in str(raised.value)
    assert list(java.own_directory().parent.iterdir()) == []


def test_a_downloaded_java_goes_into_the_projects_own_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = make_java(tmp_path / "made", "21")
    module = tmp_path / "modules" / "jdk.py"
    module.parent.mkdir()
    module.write_text(
        "import pathlib, shutil, tempfile\n"
        "def install(version, path):\n"
        "    pathlib.Path(tempfile.gettempdir(), 'jdk.tar.gz').touch()\n"
        f"    shutil.copytree({str(tmp_path / 'made')!r}, path + '/jdk-' + version)\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(module.parent))
    found = java.install_java(lambda _: None)
    assert found.executable == java.own_directory() / "bin" / "java"
    assert found.executable.read_text() == made.read_text()
    assert list(java.own_directory().parent.iterdir()) == [java.own_directory()]


def test_the_probe_agrees_with_the_real_java(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    found = java.find_java()
    version = subprocess.run([found.executable, "-version"], capture_output=True, text=True, check=True).stderr
    assert f'version "{found.major}.' in version
    assert (found.home / "bin" / "java").exists()
