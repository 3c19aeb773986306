"""The Java libraries of ivy.xml: one directory of jars for the Spark session, one for the embedded broker.

Few need what is in s3.xml: it is fetched when it is configured, or beforehand by who asks for it.
"""

import fcntl
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from liveboard import __version__
from liveboard.contract.errors import LiveboardError
from liveboard.install import java

Configuration = Literal["spark", "broker"]
Extra = Literal["s3"]
_LINE_S = 5.0


def directory() -> Path:
    """Where everything is that is made of ivy.xml; a new ivy.xml replaces it as a whole."""
    return _place("jars", _ivy_xml())


def _place(name: str, wanted: Path) -> Path:
    """Where the jars of an Ivy file are, or are to be.

    That is in the environment of Python, or where the user may not write there and they are not there, in the user's
    own cache.
    """
    shared = Path(sys.prefix, "share", "liveboard", name)
    if _is_of(shared, wanted) or _is_writable(shared):
        return shared
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(caches, "liveboard", __version__, name)


def jars(conf: Configuration) -> list[Path]:
    """The jars of a configuration, as `fetch` left them."""
    if not fetched():
        raise LiveboardError(
            f"The Java libraries of ivy.xml are not in {directory()}, or others are: run `python -m liveboard.install`."
        )
    return sorted((directory() / conf).glob("*.jar"))


def extra_jars(extra: Extra, show: Callable[[str], None]) -> list[Path]:
    """The jars of an extra, which are fetched if they are not there yet; `show` is told about that."""
    return jars_of(Path(__file__).with_name(f"{extra}.xml"), show)


def jars_of(wanted: Path, show: Callable[[str], None]) -> list[Path]:
    """The jars of an Ivy file with one configuration, which has the file's name; fetched if they are not there yet."""
    name = wanted.stem
    target = _place(name, wanted)
    if not _is_of(target, wanted):
        with _alone(target):
            if not _is_of(target, wanted):
                show(f"fetching the Java libraries for {name}, this once")
                _replace(target, wanted, (name,), _now_and_then(show))
    return sorted((target / name).glob("*.jar"))


def _now_and_then(show: Callable[[str], None]) -> Callable[[str], None]:
    """For a log: a line every few seconds."""
    shown = time.monotonic()

    def line(text: str) -> None:
        nonlocal shown
        if time.monotonic() - shown > _LINE_S:
            shown = time.monotonic()
            show(text)

    return line


def cache(conf: Configuration) -> Path:
    """The file with what Java learnt in a run of these jars, which makes every later start faster."""
    return directory() / f"{conf}.aot"


def fetched() -> bool:
    """Whether the libraries of the present ivy.xml are in place."""
    return _is_of(directory(), _ivy_xml())


def provide(show: Callable[[str], None]) -> None:
    """Fetches the libraries if they are not there; whoever else does that at the moment is waited for."""
    with _alone(directory()):
        if not fetched():
            fetch(show)


def fetch(show: Callable[[str], None] = print) -> None:
    """Resolves ivy.xml with the Ivy inside PySpark; the jars are replaced as a whole or not at all."""
    _replace(directory(), _ivy_xml(), ("spark", "broker"), show)


def _is_of(target: Path, wanted: Path) -> bool:
    try:
        return (target / "ivy.xml").read_bytes() == wanted.read_bytes()
    except OSError:
        return False


def _replace(target: Path, wanted: Path, confs: tuple[str, ...], show: Callable[[str], None]) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    for left_over in target.parent.glob(f"{target.name}-*"):
        shutil.rmtree(left_over)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f"{target.name}-") as work:
        new = Path(work, "new")
        _resolve(wanted, confs, new, target.with_name("ivy"), show)
        shutil.copyfile(wanted, new / "ivy.xml")
        if target.exists():
            target.rename(Path(work, "old"))
        new.rename(target)


@contextmanager
def _alone(target: Path) -> Iterator[None]:
    """Whoever else fetches something beside `target` at the moment is waited for."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        lock = target.with_name("lock").open("w")
    except OSError as error:
        words = "" if target.name == "jars" else f" {target.name}"
        raise LiveboardError(
            f"The Java libraries: expected a directory to write to at {target.parent}, found: {error.strerror}; set "
            f"XDG_CACHE_HOME to one, or run `python -m liveboard.install{words}` as whoever may write to {sys.prefix}."
        ) from None
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _is_writable(path: Path) -> bool:
    """Whether this user may make the directory, or change it."""
    return os.access(next(place for place in (path, *path.parents) if place.exists()), os.W_OK)


def _resolve(wanted: Path, confs: tuple[str, ...], into: Path, home: Path, show: Callable[[str], None]) -> None:
    command: list[str | Path] = [
        java.executable(),
        "-XX:TieredStopAtLevel=1",
        *java.trusting(into.parent / "trusted.p12"),
        f"-Divy.default.ivy.user.dir={home}",
        "-jar",
        _ivy_jar(),
        "-ivy",
        wanted,
        "-cache",
        home / "cache",
        "-retrieve",
        into / "[conf]" / "[artifact]-[revision].[ext]",
        "-types",
        "jar",
        "bundle",
    ]
    output: list[str] = []
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        for text in _progress(process.stdout, output):
            show(text)
    if process.returncode != 0 or not all(any(into.glob(f"{conf}/*.jar")) for conf in confs):
        raise LiveboardError(_failure(output))


def _progress(lines: Iterator[str], output: list[str]) -> Iterator[str]:
    found = 0
    for line in lines:
        output.append(line)
        if match := re.match(r"\s*found \S+#(\S+);(\S+)", line):
            found += 1
            yield f"{found} found: {match[1]}-{match[2]}"
        elif match := re.match(r"downloading .*/(\S+\.jar)", line):
            yield f"fetching {match[1]}"


def _failure(output: list[str]) -> str:
    text = "".join(output)
    unreachable = re.search(
        r"Host \S+ not found|UnknownHost\w*|Connection refused|Network is unreachable|timed out"
        r"|Server access error|SSL\w*Exception|PKIX path",
        text,
    )
    missing = re.findall(r"::\s+(\S+#\S+?;\S+?): not found", text)
    if unreachable:
        cause = f"the Maven repository cannot be reached ({unreachable[0]})"
        advice = "check the network (a proxy is set by JAVA_TOOL_OPTIONS=-Dhttps.proxyHost=HOST)"
    elif missing:
        cause = f"the Maven repository does not have {', '.join(sorted(set(missing)))}"
        advice = "check the versions in ivy.xml and s3.xml"
    else:
        problems = [line.strip() for line in output if re.search(r"error|exception|fail", line, re.I)]
        cause = f"Ivy ended with: {(problems or [*output, 'nothing'])[0].strip()}"
        advice = "see what is wrong there"
    return f"The Java libraries could not be fetched because {cause}: {advice} and run this again."


def _ivy_xml() -> Path:
    """Beside the package in a wheel, at the root of a checkout."""
    installed = Path(__file__).parents[1] / "ivy.xml"
    return installed if installed.exists() else Path(__file__).parents[3] / "ivy.xml"


def _ivy_jar() -> Path:
    spec = importlib.util.find_spec("pyspark")
    places = spec.submodule_search_locations if spec else None
    found = [jar for place in places or () for jar in Path(place).glob("jars/ivy-*.jar")]
    if not found:
        raise LiveboardError("PySpark with its jars is not installed: install liveboard again, with what it needs.")
    return found[0]
