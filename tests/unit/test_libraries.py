"""The Java libraries: where they are, and what is said when they are not."""

import os
import sys
from pathlib import Path

import pytest

from liveboard import __version__
from liveboard.contract.errors import LiveboardError
from liveboard.install import __main__ as install
from liveboard.install import java, libraries, progress

RESOLVED = """\
:: resolving dependencies :: liveboard#liveboard;working@vm
	found org.apache.kafka#kafka_2.13;4.3.1 in public
	found org.slf4j#slf4j-api;1.7.36 in public
downloading https://somewhere/kafka_2.13-4.3.1.jar ...
	[SUCCESSFUL ] org.apache.kafka#kafka_2.13;4.3.1!kafka_2.13.jar (99ms)
"""


@pytest.fixture
def prefix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    return tmp_path


def use_ivy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Puts a script in the place of Java, which is what runs Ivy."""
    executable = tmp_path / "fake-java"
    executable.write_text(f"#!/bin/sh\n{script}\n")
    executable.chmod(0o755)
    monkeypatch.setattr(java, "executable", lambda: executable)


IVY_RETRIEVES = """\
for argument; do case "$argument" in *'[conf]'*) into="${argument%%/'[conf]'*}";; esac; done
mkdir -p "$into/spark" "$into/broker" "$into/s3"
touch "$into/spark/connector-2.jar" "$into/broker/kafka-2.jar" "$into/s3/hadoop-aws-2.jar"
"""


def test_an_extra_is_fetched_when_it_is_asked_for_and_then_there(prefix: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    use_ivy(prefix, monkeypatch, IVY_RETRIEVES)
    assert [jar.name for jar in libraries.extra_jars("s3", said.append)] == ["hadoop-aws-2.jar"]
    assert said == ["fetching the Java libraries for s3, this once"]
    use_ivy(prefix, monkeypatch, "exit 1")
    assert [jar.name for jar in libraries.extra_jars("s3", said.append)] == ["hadoop-aws-2.jar"]


def test_an_extra_of_an_image_is_found_by_who_may_not_write_there(
    prefix: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_ivy(prefix, monkeypatch, IVY_RETRIEVES)
    monkeypatch.setattr(sys, "argv", ["install", "s3"])
    assert install.main() == 0
    monkeypatch.setattr(os, "access", lambda *_: False)
    use_ivy(prefix, monkeypatch, "exit 1")
    [jar] = libraries.extra_jars("s3", print)
    assert jar.is_relative_to(prefix / "share")


def test_an_extra_that_an_image_lacks_goes_to_the_users_cache(prefix: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_ivy(prefix, monkeypatch, IVY_RETRIEVES)
    progress.provide_libraries("fetching")
    monkeypatch.setenv("XDG_CACHE_HOME", str(prefix / "cache"))
    monkeypatch.setattr(os, "access", lambda *_: False)
    [jar] = libraries.extra_jars("s3", print)
    assert jar == prefix / "cache" / "liveboard" / __version__ / "s3" / "s3" / "hadoop-aws-2.jar"
    assert libraries.directory().is_relative_to(prefix / "share")


def test_missing_libraries_say_what_to_do(prefix: Path) -> None:
    with pytest.raises(LiveboardError, match=f"not in {prefix}.*run `python -m liveboard.install`"):
        libraries.jars("broker")


def test_new_libraries_replace_the_old_ones_as_a_whole(prefix: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = libraries.directory() / "broker" / "kafka-1.jar"
    old.parent.mkdir(parents=True)
    old.touch()
    (libraries.directory() / "ivy.xml").write_text("<old/>")
    with pytest.raises(LiveboardError, match=r"run `python -m liveboard\.install`"):
        libraries.jars("broker")

    use_ivy(prefix, monkeypatch, IVY_RETRIEVES)
    libraries.fetch(lambda _: None)

    assert [jar.name for jar in libraries.jars("broker")] == ["kafka-2.jar"]
    assert [jar.name for jar in libraries.jars("spark")] == ["connector-2.jar"]
    assert [entry.name for entry in libraries.directory().parent.iterdir()] == ["jars"]


def test_they_are_fetched_once(
    prefix: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    use_ivy(prefix, monkeypatch, IVY_RETRIEVES)
    progress.provide_libraries("fetching")
    assert capsys.readouterr().out == "fetching ...\n      2 jars\n"
    use_ivy(prefix, monkeypatch, "exit 1")
    progress.provide_libraries("fetching")
    assert capsys.readouterr().out == ""


def test_where_python_is_not_writable_they_are_in_the_users_cache(
    prefix: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(prefix / "cache"))
    monkeypatch.setattr(os, "access", lambda *_: False)
    use_ivy(prefix, monkeypatch, IVY_RETRIEVES)
    progress.provide_libraries("fetching")
    assert libraries.directory() == prefix / "cache" / "liveboard" / __version__ / "jars"
    assert libraries.fetched()


def test_those_of_an_image_are_found_by_who_may_not_write_there(prefix: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_ivy(prefix, monkeypatch, IVY_RETRIEVES)
    progress.provide_libraries("fetching")
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert libraries.directory().is_relative_to(prefix / "share")


def test_nowhere_to_write_is_one_sentence(prefix: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (prefix / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(prefix / "file"))
    monkeypatch.setattr(os, "access", lambda *_: False)
    expected = r"expected a directory to write to at .*; set XDG_CACHE_HOME to one, or run `python -m liveboard.install"
    with pytest.raises(LiveboardError, match=f"{expected}` as whoever may write to {prefix}"):
        progress.provide_libraries("fetching")
    with pytest.raises(LiveboardError, match=f"{expected} s3` as"):
        libraries.extra_jars("s3", print)


def test_libraries_of_another_version_that_cannot_be_replaced_are_left_alone(
    prefix: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = prefix / "share" / "liveboard" / "jars" / "ivy.xml"
    old.parent.mkdir(parents=True)
    old.write_text("<old/>")
    monkeypatch.setenv("XDG_CACHE_HOME", str(prefix / "cache"))
    monkeypatch.setattr(os, "access", lambda *_: False)
    use_ivy(prefix, monkeypatch, IVY_RETRIEVES)
    progress.provide_libraries("fetching")
    assert libraries.directory().is_relative_to(prefix / "cache")
    assert old.read_text() == "<old/>"


def test_a_failed_fetch_keeps_what_was_there(prefix: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_ivy(prefix, monkeypatch, IVY_RETRIEVES)
    libraries.fetch(lambda _: None)
    use_ivy(prefix, monkeypatch, IVY_RETRIEVES + "exit 1")
    with pytest.raises(LiveboardError, match="could not be fetched"):
        libraries.fetch(lambda _: None)
    assert [jar.name for jar in libraries.jars("broker")] == ["kafka-2.jar"]


def test_progress_names_the_libraries_as_they_come() -> None:
    output: list[str] = []
    shown = list(libraries._progress(iter(RESOLVED.splitlines(keepends=True)), output))
    assert shown == [
        "1 found: kafka_2.13-4.3.1",
        "2 found: slf4j-api-1.7.36",
        "fetching kafka_2.13-4.3.1.jar",
    ]
    assert "".join(output) == RESOLVED


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        (
            "Host some.host not found. url=...",
            r"cannot be reached \(Host some.host not found\): check the network",
        ),
        ("Server access error at url x (java.net.ConnectException: Connection refused)", "cannot be reached"),
        (
            "\t\t:: org.apache.kafka#kafka_2.13;9.9.9: not found\n",
            "does not have org.apache.kafka#kafka_2.13;9.9.9: check the versions in ivy.xml",
        ),
        ("java.text.ParseException: bad ivy.xml", "Ivy ended with: java.text.ParseException: bad ivy.xml"),
        ("", "Ivy ended with: nothing"),
    ],
)
def test_a_failure_is_one_sentence(prefix: Path, monkeypatch: pytest.MonkeyPatch, output: str, expected: str) -> None:
    (prefix / "output").write_text(output)
    use_ivy(prefix, monkeypatch, f"cat '{prefix}/output'; exit 1")
    with pytest.raises(LiveboardError, match=expected) as raised:
        libraries.fetch(lambda _: None)
    assert "\n" not in str(raised.value)
    assert not libraries.directory().exists()


def test_the_real_libraries_are_in_place() -> None:
    for conf, name in (
        ("spark", "spark-sql-kafka"),
        ("broker", "kafka_2.13"),
        ("broker", "log4j-slf4j-impl"),
    ):
        assert any(jar.name.startswith(name) for jar in libraries.jars(conf))  # type: ignore[arg-type]
