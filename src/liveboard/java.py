"""The Java that Spark and the embedded broker run on."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from liveboard.errors import LiveboardError

VERSIONS = (21, 17)
"""The major versions that Spark 4.3 and Kafka 4.3 both run on, the one to install first."""

_PLACES = (
    (Path("/usr/lib/jvm"), "*/bin/java"),
    (Path("/opt/homebrew/opt"), "openjdk*/bin/java"),
    (Path("/usr/local/opt"), "openjdk*/bin/java"),
    (Path("/Library/Java/JavaVirtualMachines"), "*/Contents/Home/bin/java"),
    (Path("~/.sdkman/candidates/java"), "*/bin/java"),
)
_SPARK_NEEDS = "jdk.incubator.vector"
_DOWNLOAD_TIMEOUT_S = 900


@dataclass(frozen=True)
class Java:
    executable: Path
    major: int
    home: Path


def own_directory() -> Path:
    """Where `install_java` puts a Java of the project's own."""
    return Path(sys.prefix, "share", "liveboard", "jdk")


def find_java() -> Java:
    """The first complete Java 17 or 21 of JAVA_HOME, PATH, the usual places and the project's own."""
    java, found = _search()
    if java is None:
        raise LiveboardError(
            f"Spark and Kafka need a complete Java 17 or 21, and this machine has {found}: "
            f"install one ({_hint()}) or set JAVA_HOME to it."
        )
    return java


def install_java(show: Callable[[str], None] = print) -> Java:
    """Puts a Java into the project's own directory, all of it or nothing."""
    reason = ""
    target = own_directory()
    target.parent.mkdir(parents=True, exist_ok=True)
    for left_over in target.parent.glob("jdk-*"):
        shutil.rmtree(left_over)
    for major in VERSIONS:
        with tempfile.TemporaryDirectory(dir=target.parent, prefix="jdk-") as work:
            reason = _download(major, Path(work), show)
            homes = [path for path in Path(work).iterdir() if path.is_dir()]
            if reason or len(homes) != 1:
                continue
            shutil.rmtree(target, ignore_errors=True)
            homes[0].rename(target)
        return find_java()
    raise LiveboardError(
        f"Spark and Kafka need a complete Java 17 or 21, this machine has {_search()[1]}, and none could be "
        f"downloaded ({reason or 'the archive has an unknown layout'}): install one ({_hint()}) and run this "
        "again."
    )


def _search() -> tuple[Java | None, str]:
    """The Java to use, if there is one, and in words what else was found on the way."""
    seen: set[Path] = set()
    found: list[str] = []
    for executable in _candidates():
        if executable.resolve() in seen or not os.access(executable, os.X_OK):
            continue
        seen.add(executable.resolve())
        java = _probe(executable)
        if java is None:
            found.append(f"{executable} that does not run")
        elif java.major not in VERSIONS:
            found.append(f"Java {java.major} in {java.home}")
        elif not _complete(java):
            found.append(f"a Java {java.major} without the module {_SPARK_NEEDS} in {java.home}")
        else:
            return java, _join(found)
    return None, _join(found) or "no Java"


def _candidates() -> Iterator[Path]:
    if home := os.environ.get("JAVA_HOME"):
        yield Path(home, "bin", "java")
    for directory in os.get_exec_path():
        yield Path(directory, "java")
    for place, pattern in _PLACES:
        yield from sorted(place.expanduser().glob(pattern))
    yield own_directory() / "bin/java"
    yield own_directory() / "Contents/Home/bin/java"


def _probe(executable: Path) -> Java | None:
    settings = _run(executable, "-XshowSettings:properties", "-version")
    version = re.search(r"^\s*java\.specification\.version = (?:1\.)?(\d+)", settings, re.MULTILINE)
    home = re.search(r"^\s*java\.home = (.+)$", settings, re.MULTILINE)
    return Java(executable, int(version[1]), Path(home[1].strip())) if version and home else None


def _complete(java: Java) -> bool:
    modules = _run(java.executable, "--list-modules").splitlines()
    return any(module.split("@")[0] == _SPARK_NEEDS for module in modules)


def _run(executable: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(
            [executable, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout + done.stderr if done.returncode == 0 else ""


def _download(major: int, work: Path, show: Callable[[str], None]) -> str:
    """Unpacks a JDK below `work`, by the install-jdk package; returns why it failed, or nothing.

    A process of its own: the package downloads into the system's temporary directory and never gives up.
    """
    script = "import jdk, sys; jdk.install(sys.argv[1], path=sys.argv[2])"
    with tempfile.TemporaryDirectory(dir=work.parent, prefix="jdk-download-") as temporary:
        process = subprocess.Popen(
            [sys.executable, "-c", script, str(major), str(work)],
            env=os.environ | {"TMPDIR": temporary},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            for _ in range(_DOWNLOAD_TIMEOUT_S):
                try:
                    _, errors = process.communicate(timeout=1)
                except subprocess.TimeoutExpired:
                    size = sum(file.stat().st_size for file in Path(temporary).glob("*"))
                    show(f"Java {major}: {size / 1e6:.0f} MB")
                else:
                    return errors.strip().splitlines()[-1].rstrip(".") if process.returncode else ""
            return f"no Java {major} within {_DOWNLOAD_TIMEOUT_S // 60} minutes"
        finally:
            process.kill()
            process.wait()


def _hint() -> str:
    if sys.platform == "darwin":
        return "`brew install openjdk@21`"
    for tool, command in (
        ("apt", "`apt install openjdk-17-jre-headless`"),
        ("dnf", "`dnf install java-21-openjdk-headless`"),
        ("apk", "`apk add openjdk21-jre-headless`"),
    ):
        if shutil.which(tool):
            return command
    return "for example Eclipse Temurin 21"


def _join(found: list[str]) -> str:
    return " and ".join(filter(None, [", ".join(found[:-1]), *found[-1:]]))
