"""`liveboard up --sample` as a user runs it: everything grows, heals, ends, and goes on where it was."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from whole import LIVEBOARD, PATIENCE_S, TABLES, Up, command, left, up_in

from liveboard.config import default_board
from liveboard.contract.tables import table_columns

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(1800)]


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Up]:
    with up_in(tmp_path) as running:
        yield running


def test_up_grows_heals_ends_and_goes_on(up: Up) -> None:
    up.until_live_and_growing()

    _kill(up, "-m liveboard pipeline", "pipeline starts again in 1 s: killed by SIGKILL")
    _kill(up, "SparkSubmit", "pipeline starts again in . s.*: .*Spark")
    _kill(up, "kafka.Kafka", "broker starts again in 1 s: The broker was killed by SIGKILL")
    up.find("-m liveboard serve").kill()
    up.until(lambda: "serve starts again in 1 s: killed by SIGKILL" in up.said())
    _the_server_answers(up)

    heading, *rows = up.run("tail", "final_ui", "--limit", "3").splitlines()
    assert heading.split() == [column.name for column in table_columns(default_board())["final_ui"]]
    assert len(rows) == 3
    [changed] = [json.loads(line) for line in up.run("tail", "final_ui", "--json", "--limit", "1").splitlines()]
    assert changed["table"] == "final_ui"
    assert re.fullmatch(r"\d+-\d+", changed["key"])
    assert re.fullmatch(r"u\d{5}", changed["row"]["userId"])
    assert "all is well" in up.run("doctor")

    before = up.rows()
    assert up.end(signal.SIGINT) == []

    up.start()
    up.until(lambda: up.rows().keys() == set(TABLES))
    up.until(lambda: all(up.rows()[table] >= before[table] for table in TABLES))
    assert set(up.states().values()) == {"starting …"}
    up.until_live_and_growing()
    assert up.end(signal.SIGTERM) == []


def _the_server_answers(up: Up) -> None:
    """The commands that ask the server, which find it and its key by themselves."""
    tables = {*TABLES, "alerts_ui", "exposure", "control_raw", "orchestrator_status"}
    up.until(lambda: {line.split()[0] for line in up.try_to_run("tables").stdout.splitlines()} == tables)
    heading, *rows = up.run("export", "final_ui").splitlines()
    assert heading == ",".join(column.name for column in table_columns(default_board())["final_ui"])
    assert len(rows) > 10
    url, key = re.findall(r"live tables at (http://\S+) with the key (\S+)", up.said_from_the_start())[-1]
    heading, *rows = up.run("tail", "final_ui", "--url", url, "--limit", "3").splitlines()
    assert heading.split()[0] == "userId"
    assert len(rows) == 3
    assert key not in " ".join(command(process) for process in up.family())
    said = up.run("swap", "--join", "inner", "--wait", "--url", url, "--key", key)
    assert said.endswith("the board is live with the new wiring\n")
    up.run("swap", "--join", "left", "--wait")


def _kill(up: Up, words: str, notice: str) -> None:
    """Kills one process; it is said, tables are stale, and then all is as before."""
    victim = up.find(words)
    up.forget()
    victim.kill()
    up.until(lambda: re.search(f"^liveboard: {notice}", up.said(), re.MULTILINE))
    up.until(lambda: re.search(r"stale since \d\d:\d\d:\d\d", up.said()))
    up.forget()
    up.until_live_and_growing()


def test_interrupted_while_starting_it_ends_cleanly(up: Up) -> None:
    up.until(lambda: up.family())
    assert up.end(signal.SIGINT) == []


class TestOneThatStarts:
    """What is so while it starts, in the order in which it can be seen."""

    @pytest.fixture(scope="class")
    @classmethod
    def up(cls, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
        with up_in(tmp_path_factory.mktemp("up")) as running:
            yield running

    def test_the_address_can_be_opened_as_soon_as_it_is_shown(self, up: Up) -> None:
        up.until(lambda: "liveboard: open http" in up.said())
        [url] = re.findall(r"live tables at (http://\S+) with", up.said())
        with urllib.request.urlopen(url) as answer:
            assert answer.status == 200

    def test_a_second_up_on_the_same_directory_is_refused_in_one_sentence(self, up: Up) -> None:
        up.until(lambda: "Kafka 127.0.0.1" in up.said())
        done = subprocess.run([*LIVEBOARD, "up"], env=up.environ, capture_output=True, text=True, timeout=PATIENCE_S)
        assert done.returncode == 1
        assert re.fullmatch(r"liveboard: The broker directory .* is in use .*\n", done.stderr)
        assert up.process.poll() is None

    def test_killed_up_leaves_no_process(self, up: Up) -> None:
        up.until(lambda: "pipeline: starting Spark" in up.said())
        up.until(lambda: any("SparkSubmit" in command(process) for process in up.family()))
        family = up.family()
        up.process.kill()
        up.process.wait()
        assert left(family, PATIENCE_S) == []
