"""The command line: help, errors in one sentence, exit codes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from liveboard import __version__, config
from liveboard.commands import cli
from liveboard.commands.tail import Changed, json_lines, text_lines
from liveboard.contract.errors import LiveboardError
from liveboard.kafka import address

COMMANDS = ("up", "broker", "pipeline", "serve", "sample", "inspect", "init", "tail", "tables", "export", "doctor")


@pytest.fixture(autouse=True)
def _nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An empty working directory and no variables of the user's own."""
    monkeypatch.chdir(tmp_path)
    for name in os.environ:
        if name.startswith("LIVEBOARD_"):
            monkeypatch.delenv(name)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_and_takes_a_configuration(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main([command, "--help"])
    assert ended.value.code == 0
    text = capsys.readouterr().out
    assert f"usage: liveboard {command}" in text
    assert "--config FILE" in text


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    text = capsys.readouterr().out
    assert all(f"    {command} " in text for command in COMMANDS)


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"liveboard {__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["dance"], "invalid choice: 'dance'"),
        ([], "COMMAND"),
        (["sample", "--bad", "2"], "--bad: expected a number from 0 to 1, found 2"),
        (["sample", "--rate", "fast"], "--rate: expected a number from 0, found fast"),
        (["sample", "--rate", "nan"], "--rate: expected a number from 0, found nan"),
        (["sample", "--count", "0"], "--count: expected a whole number from 1, found 0"),
        (["tail", "final_ui", "--limit", "1.5"], "--limit: expected a whole number from 1, found 1.5"),
        (["tail"], "TABLE"),
        (["inspect"], "TOPIC"),
        (["sample", "--like", "zoo"], "invalid choice: 'zoo'"),
        (["up", "--sample", "zoo"], "invalid choice: 'zoo'"),
        (["init", "--join", "left=a"], "--join: expected left=SOURCE,right=SOURCE,on=COLUMN,how=KIND, found left=a"),
        (["init", "--join", "left=a,right=b,on=c,how=outer"], "expected how=left, inner or asof, found how=outer"),
        (["init", "--no-joins", "--join", "left=a,right=b,on=c"], "not allowed with argument"),
        (["export"], "TABLE"),
        (["export", "final_ui", "--format", "xls"], "invalid choice: 'xls'"),
    ],
)
def test_wrong_usage_is_said_and_exits_2(
    arguments: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)
    assert ended.value.code == 2
    assert expected in capsys.readouterr().err


@pytest.mark.parametrize(
    "command",
    [
        ["up"],
        ["broker"],
        ["pipeline"],
        ["sample"],
        ["inspect", "orders"],
        ["init"],
        ["tail", "final_ui"],
        ["tables"],
        ["export", "final_ui"],
        ["doctor"],
    ],
)
def test_an_error_of_the_configuration_is_a_sentence_and_exits_1(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "wrong.toml"
    file.write_text("[kafka]\nprot = 1\n")
    assert cli.main([*command, "--config", str(file)]) == 1
    captured = capsys.readouterr()
    assert captured.err.startswith("liveboard: kafka.prot: ")
    assert "Traceback" not in captured.err


def test_a_missing_configuration_file_is_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["doctor", "--config", "none.toml"]) == 1
    assert capsys.readouterr().err.startswith("liveboard: none.toml: expected a configuration file")


def test_an_unknown_table_names_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["tail", "finalui"]) == 1
    tables = "users_ui, accounts_ui, final_ui, user_account, by_type, rejects_ui, control_raw, orchestrator_status"
    expected = f"expected a table ({tables}, alerts_ui)"
    assert capsys.readouterr().err == f'liveboard: {expected}, found "finalui", did you mean final_ui?\n'


def test_the_rate_of_up_needs_the_sample(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["up", "--rate", "5"]) == 1
    assert "--rate: expected --sample" in capsys.readouterr().err


def test_options_about_users_are_not_for_the_shop(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["sample", "--like", "shop", "--late-users", "0.5"]) == 1
    assert "--late-users: expected no --like shop with it" in capsys.readouterr().err


def test_the_shop_needs_a_board_that_reads_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["up", "--sample", "shop"]) == 1
    assert "--sample: expected a board that reads shop.orders" in capsys.readouterr().err


def test_a_swap_that_asks_for_nothing_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["swap"]) == 1
    assert "expected another topic or join, as in --users TOPIC or --join inner" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["sample"], ["tail", "users_ui"], ["swap", "--join", "inner"]])
def test_no_kafka_is_a_sentence_in_seconds(
    command: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LIVEBOARD_KAFKA_BOOTSTRAP_SERVERS", "127.0.0.1:1")
    assert cli.main(command) == 1
    assert "expected a Kafka broker at 127.0.0.1:1, found none (Connection refused)" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["tables"], ["export", "users_ui"]])
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ([], "psk: expected the server's key (server.psk in its settings), found nothing"),
        (["--key", "k", "--url", "here"], "url: expected the address of a server such as http://127.0.0.1:8080"),
        (["--key", "k", "--url", "http://127.0.0.1:1"], "http://127.0.0.1:1: expected a liveboard server, found none"),
    ],
)
def test_no_server_is_a_sentence(
    command: list[str], options: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main([*command, *options]) == 1
    assert capsys.readouterr().err.startswith(f"liveboard: {expected}")


def test_a_server_on_any_port_has_to_be_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LIVEBOARD_SERVER_PORT", "0")
    assert cli.main(["tables", "--key", "k"]) == 1
    assert "--url: expected the address of the server" in capsys.readouterr().err


def test_ctrl_c_exits_130_without_a_word(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> config.Settings:
        raise KeyboardInterrupt

    monkeypatch.setattr(config, "load", interrupted)
    assert cli.main(["doctor"]) == 130
    assert capsys.readouterr().err == ""


def test_signals_set_the_event_and_are_given_back() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with cli._stopping() as stopping:
        assert not stopping.is_set()
        os.kill(os.getpid(), signal.SIGTERM)
        assert stopping.wait(5)
    assert signal.getsignal(signal.SIGTERM) is before


def test_it_runs_as_a_module_and_imports_spark_only_for_the_pipeline() -> None:
    script = "import sys; from liveboard.commands import cli, up, doctor; print('pyspark' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
    done = subprocess.run([sys.executable, "-m", "liveboard", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"liveboard {__version__}\n"


def test_the_address_of_an_embedded_broker_that_chose_its_port() -> None:
    settings = config.load(environ={"LIVEBOARD_KAFKA_PORT": "0"})
    with pytest.raises(LiveboardError, match=r"kafka\.port: expected .*, found none"):
        address.bootstrap(settings)
    settings.storage.dir.mkdir()
    address.remember(settings, "127.0.0.1:1234")
    assert address.bootstrap(settings) == "127.0.0.1:1234"
    assert address.bootstrap(config.load(environ={})) == "127.0.0.1:9092"
    elsewhere = config.load(environ={"LIVEBOARD_KAFKA_BOOTSTRAP_SERVERS": "kafka:9092"})
    assert address.bootstrap(elsewhere) == "kafka:9092"


NAMES = [column.name for column in config.default_board().sources["users"].columns]
CHANGES: list[Changed] = [
    ("0-0", ("u1", "Ada \u001b[2J", None, 9007199254740993)),
    ("0-1", None),
    ("0-2", ("u2", "Augusta King", "a@b.example", 36)),
]


def test_tail_prints_a_heading_and_aligned_rows() -> None:
    lines = text_lines(NAMES)
    assert list(lines([])) == []
    assert list(lines(CHANGES)) == [
        "userId  name          email        age",
        "u1      Ada ·[2J      null         9007199254740993",
        "removed: 0-1",
        "u2      Augusta King  a@b.example  36",
    ]
    assert len(list(lines(CHANGES))) == 3


def test_tail_prints_json() -> None:
    first, removed, _ = json_lines("users_ui", NAMES)(CHANGES)
    row = '{"userId":"u1","name":"Ada \\u001b[2J","email":null,"age":9007199254740993}'
    assert first == f'{{"table":"users_ui","key":"0-0","row":{row}}}'
    assert removed == '{"table":"users_ui","key":"0-1","row":null}'
