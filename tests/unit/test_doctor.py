"""The doctor: every problem is found and said, and nothing can stop it."""

from __future__ import annotations

import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import pytest
from registry import TestRegistry

from liveboard import config
from liveboard.commands import doctor
from liveboard.commands.doctor import CHECKS, Kafka
from liveboard.config import Settings
from liveboard.contract.errors import LiveboardError
from liveboard.install import java, libraries


class Report(NamedTuple):
    ok: bool
    lines: dict[str, tuple[str, str]]


def _settings(tmp_path: Path, **variables: str) -> Settings:
    environ = {
        "LIVEBOARD_STORAGE_DIR": str(tmp_path / "data"),
        "LIVEBOARD_KAFKA_PORT": "0",
        "LIVEBOARD_SERVER_PORT": "0",
    }
    return config.load(environ={**environ, **variables})


def _examine(settings: Settings) -> Report:
    shown: list[str] = []
    ok = doctor.run(settings, shown.append)
    lines = {line[9:24].strip(): (line[:8].strip(), line[25:]) for line in shown[:-1]}
    assert list(lines) == list(CHECKS)
    problems = sum(verdict == "problem" for verdict, _ in lines.values())
    assert shown[-1].startswith(f"{problems} problem" if problems else "all is well")
    assert ok == (problems == 0)
    return Report(ok, lines)


@pytest.fixture(autouse=True)
def _a_machine_with_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "executable", lambda: Path("/java/bin/java"))
    monkeypatch.setattr(libraries, "jars", lambda _: [Path("a.jar")])


def _found(monkeypatch: pytest.MonkeyPatch, **topics: int) -> None:
    found = Kafka(topics, "kafka:9092")
    monkeypatch.setattr(doctor, "_ask_kafka", lambda _, answer: answer.set_result(found))


def test_all_is_well_before_the_first_start(tmp_path: Path) -> None:
    report = _examine(_settings(tmp_path))
    assert report.ok, report.lines
    assert "`liveboard up` starts it" in report.lines["Kafka"][1]
    assert report.lines["topics"][1] == "users, accounts to be created by `liveboard up`"
    assert report.lines["task slots"][1] == "4 needed, as many made"
    assert not (tmp_path / "data").exists()


def test_a_running_kafka_with_its_topics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _found(monkeypatch, users=3, accounts=4, **{"liveboard-control": 1})
    report = _examine(_settings(tmp_path, LIVEBOARD_KAFKA_BOOTSTRAP_SERVERS="kafka:9092"))
    assert report.ok, report.lines
    assert report.lines["Kafka"][1] == "3 topics at kafka:9092"
    assert report.lines["topics"][1] == "users (partitions: 3), accounts (partitions: 4)"
    assert report.lines["control topic"][1] == "liveboard-control"
    assert report.lines["task slots"][1] == "9 needed, as many made"


def test_missing_topics_elsewhere_are_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _found(monkeypatch, users=1)
    report = _examine(_settings(tmp_path, LIVEBOARD_KAFKA_BOOTSTRAP_SERVERS="kafka:9092"))
    expected = "expected the topics users, accounts, found users (partitions: 1); create accounts"
    assert report.lines["topics"] == ("problem", expected)


def test_a_kafka_that_is_not_there(tmp_path: Path) -> None:
    report = _examine(_settings(tmp_path, LIVEBOARD_KAFKA_BOOTSTRAP_SERVERS="127.0.0.1:1"))
    verdict, text = report.lines["Kafka"]
    assert verdict == "problem"
    assert "expected a Kafka broker at 127.0.0.1:1, found none" in text
    assert report.lines["topics"][0] == "problem"


@pytest.mark.parametrize(
    ("master", "verdict", "text"),
    [
        (
            "local[3]",
            "problem",
            'spark.master: expected 4 task slots or more, found 3 in local[3]; use "local"',
        ),
        ("local[4]", "ok", "4 needed, 4 in local[4]"),
        ("local[99,3]", "ok", "4 needed, 99 in local[99,3]"),
        ("spark://there:7077", "ok", "4 needed, checked by spark://there:7077"),
    ],
)
def test_task_slots(tmp_path: Path, master: str, verdict: str, text: str) -> None:
    settings = _settings(tmp_path, LIVEBOARD_SPARK_MASTER=master, LIVEBOARD_STORAGE_CHECKPOINTS="s3a://bucket/boards")
    assert _examine(settings).lines["task slots"] == (verdict, text)


def test_ports_in_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Before the doctor's deadline there is time to wait once, and not twice.
    monkeypatch.setattr(doctor, "_KAFKA_TIMEOUT_S", 5.0)
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = str(other.getsockname()[1])
        # It takes the connection, so the doctor waits for a Kafka there, but not for ever.
        report = _examine(_settings(tmp_path, LIVEBOARD_KAFKA_PORT=port, LIVEBOARD_SERVER_PORT=port))
    for key in ("kafka.port", "server.port"):
        verdict, text = report.lines[key]
        assert verdict == "problem"
        assert text.startswith(f"{key}: expected a free port, found {port} of 127.0.0.1: Address already in use; ")
    assert {name for name, (verdict, _) in report.lines.items() if verdict == "problem"} == {
        "kafka.port",
        "server.port",
    }


def test_a_port_that_liveboards_own_server_answers_is_no_problem(tmp_path: Path) -> None:
    class Health(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b'{"status": "ok", "server": "liveboard 1.2.3"}')

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Health) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        port = server.server_address[1]
        report = _examine(_settings(tmp_path, LIVEBOARD_SERVER_PORT=str(port)))
        server.shutdown()
    assert report.lines["server.port"] == ("ok", f"{port} of 127.0.0.1 is answered by liveboard 1.2.3")


def test_little_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Memory(NamedTuple):
        available: int = 1_000_000_000

    monkeypatch.setattr(psutil, "virtual_memory", Memory)
    verdict, text = _examine(_settings(tmp_path)).lines["memory"]
    assert verdict == "problem"
    assert "expected 2 GB for Spark and the broker, found 1.0 GB available" in text


def test_little_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Disk(NamedTuple):
        free: int = 500_000_000

    monkeypatch.setattr("shutil.disk_usage", lambda _: Disk())
    assert _examine(_settings(tmp_path)).lines["storage"][1].startswith("storage.dir: expected 1 GB free, found 0.5 GB")


def test_a_storage_directory_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("")
    verdict, text = _examine(_settings(tmp_path)).lines["storage"]
    assert verdict == "problem"
    assert text.startswith("storage.dir: expected a directory that can be written, found ")


def test_no_java_is_said_in_its_own_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> Path:
        raise LiveboardError("install Java")

    monkeypatch.setattr(java, "executable", none)
    assert _examine(_settings(tmp_path)).lines["Java"] == ("problem", "install Java")


def test_checks_that_break_or_hang_are_problems_and_the_others_are_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(*_: Any) -> str:
        raise ZeroDivisionError("oh")

    def hangs(*_: Any) -> str:
        time.sleep(3)
        return ""

    monkeypatch.setattr(doctor, "_DEADLINE_S", 0.5)
    monkeypatch.setitem(CHECKS, "Python", hangs)
    monkeypatch.setitem(CHECKS, "memory", breaks)
    lines = _examine(_settings(tmp_path)).lines
    assert lines["memory"] == ("problem", "this could not be checked: ZeroDivisionError: oh")
    assert lines["Python"][0] == "problem"
    assert "found none" in lines["Python"][1]
    assert lines["storage"][0] == "ok"


def test_b39_the_registry_is_asked_for_the_schemas_of_sources_in_avro(tmp_path: Path) -> None:
    board = """
    [sources.orders]
    topic = "orders"
    format = "avro"
    schema = "id bigint"
    table = "orders_ui"
    """
    with TestRegistry(login="ada:geheim") as registry:
        login = {"LIVEBOARD_REGISTRY_USERNAME": "ada", "LIVEBOARD_REGISTRY_PASSWORD": "geheim"}
        settings = _settings(tmp_path, LIVEBOARD_BOARD=board, LIVEBOARD_REGISTRY_URL=registry.url, **login)
        assert _examine(settings).lines["registry"] == ("ok", f"no orders-value yet at {registry.url}")
        registry.register("orders-value", "long")
        assert _examine(settings).lines["registry"] == ("ok", f"orders-value (versions: 1) at {registry.url}")
        settings = _settings(tmp_path, LIVEBOARD_BOARD=board, LIVEBOARD_REGISTRY_URL=registry.url)
        verdict, text = _examine(settings).lines["registry"]
        assert verdict == "problem"
        assert text.startswith("registry.username, registry.password: expected a login")
    assert "not used" in _examine(_settings(tmp_path)).lines["registry"][1]
