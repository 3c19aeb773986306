"""Defaults, files and values of the configuration."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from configured import File, Raw
from hypothesis import given
from hypothesis import strategies as st

from liveboard import config
from liveboard.config import ConfigError, Duration, KafkaSettings, Secret, Settings, load
from liveboard.config.board import (
    AggregateSettings,
    AlertSettings,
    BoardSettings,
    JoinSettings,
    SourceSettings,
    default_tables,
)
from liveboard.config.environment import variable
from liveboard.contract.errors import LiveboardError
from liveboard.contract.schema import Column
from liveboard.sql.check import view_problems

# The defaults and where the file is.


def test_the_defaults() -> None:
    loaded = load(environ={})
    assert loaded == Settings()
    assert loaded.kafka == KafkaSettings(bootstrap_servers="embedded", port=9092, start_from="earliest")
    assert loaded.kafka.embedded
    assert loaded.kafka.sasl is None
    assert (loaded.server.host, loaded.server.port, loaded.server.psk) == ("127.0.0.1", 8080, Secret(""))
    assert (loaded.spark.master, loaded.spark.checkpoint_interval) == ("local", Duration(300))
    assert loaded.storage.dir == Path(".liveboard")
    assert (loaded.names.control, loaded.control.retire_after) == ("liveboard-control", Duration(900))
    assert loaded.board == BoardSettings(
        sources={
            "users": SourceSettings(
                name="users",
                topic="users",
                schema="userId string, name string, email string, age bigint",
                table="users_ui",
                on_error="reject",
                max_value_bytes=1_048_576,
            ),
            "accounts": SourceSettings(
                name="accounts",
                topic="accounts",
                schema="userId string, accountType string, balance double",
                table="accounts_ui",
            ),
        },
        joins={
            "final_ui": JoinSettings(
                name="final_ui", left="users", right="accounts", on="userId", how="left", history=None
            ),
            "user_account": JoinSettings(name="user_account", left="accounts", right="users", on="userId", how="asof"),
        },
        aggregates={
            "by_type": AggregateSettings(
                name="by_type",
                source="accounts",
                by=("accountType",),
                measures={
                    "accounts": "count(*)",
                    "total": "sum(balance)",
                    "largest": "max(balance)",
                    "newest": "max(ts)",
                },
            )
        },
        alerts={"overdrawn": AlertSettings(name="overdrawn", table="final_ui", when=(("balance", "<", 0),))},
        views=loaded.board.views,
    )
    assert list(loaded.board.views) == ["exposure"]
    assert list(view_problems(loaded.board)) == []
    assert loaded.board.sources["accounts"].columns[2] == Column("balance", "double")


def test_settings_are_frozen() -> None:
    loaded = load(environ={})
    with pytest.raises(dataclasses.FrozenInstanceError):
        loaded.kafka.port = 1  # type: ignore[misc]
    with pytest.raises(TypeError):
        loaded.board.sources["x"] = loaded.board.sources["users"]  # type: ignore[index]


def test_where_the_file_is(tmp_path: Path) -> None:
    (tmp_path / "liveboard.toml").write_text("server.port = 1")
    (tmp_path / "named.toml").write_text("server.port = 2")
    (tmp_path / "given.toml").write_text("server.port = 3")
    assert load(environ={}).server.port == 1
    assert load(environ={"LIVEBOARD_CONFIG": "named.toml"}).server.port == 2
    assert load(tmp_path / "given.toml", {"LIVEBOARD_CONFIG": "named.toml"}).server.port == 3
    assert load(environ={"LIVEBOARD_SERVER_PORT": "4"}).server.port == 4


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(ConfigError, match=r"^none.toml: expected a configuration file .* No such file"):
        load(Path("none.toml"), {})
    with pytest.raises(ConfigError, match=r"^\.: expected a configuration file .* Is a directory"):
        load(environ={"LIVEBOARD_CONFIG": "."})


@pytest.mark.parametrize(
    ("content", "place"),
    [
        (b"[kafka]\nport = \n", "some.toml, line 2, column 8: expected valid TOML, found: Invalid value"),
        (b"[kafka]\nport = 'x", "some.toml, line 2, column 10: expected valid TOML"),
        (b"[kafka]\nport = 1\nport = 2\n", "some.toml, line 3, column 9: expected valid TOML"),
        (b"[kafka]\n# \xff\n", "some.toml, line 2, column 3: expected UTF-8"),
        (b"a = " + b"9" * 5000, "some.toml: expected valid TOML"),
    ],
)
def test_toml_errors_have_a_place(tmp_path: Path, content: bytes, place: str) -> None:
    (tmp_path / "some.toml").write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        load(Path("some.toml"), {})
    assert place in str(caught.value)
    assert isinstance(caught.value, LiveboardError)


def test_a_byte_order_mark_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "some.toml").write_bytes(b"\xef\xbb\xbfserver.port = 5")
    assert load(Path("some.toml"), {}).server.port == 5


def test_a_file_with_a_source_replaces_the_default_board(file: File) -> None:
    source = {"topic": "orders", "schema": "id int", "table": "orders_ui"}
    loaded = file.load({"board": {"sources": {"orders": source}}})
    assert list(loaded.board.sources) == ["orders"]
    assert not loaded.board.joins
    nothings: list[Raw] = [{}, {"sources": {}}, {"joins": {}}]
    for nothing in nothings:
        assert file.load({"board": nothing}).board == config.default_board()
    assert file.problems({"board": {"sources": 0}}) == ["board.sources: expected a table, found 0 (FILE)"]


# Values.


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("5 minutes", 300),
        ("900 s", 900),
        ("500 ms", 0.5),
        ("1 h", 3600),
        ("1.5 Hours", 5400),
        ("2d", 172800),
        ("1m", 60),
        (" 7 sec ", 7),
        ("1 millisecond", 0.001),
    ],
)
def test_durations(text: str, seconds: float) -> None:
    assert Duration.parse(text) == Duration(seconds)


@pytest.mark.parametrize("text", ["", "5", "s", "-1 s", "1 fortnight", "1 s 2 ms", "1e3 s", "nan s", "5 minute s"])
def test_no_durations(text: str) -> None:
    with pytest.raises(ValueError, match="not a duration"):
        Duration.parse(text)


@given(st.integers(0, 10**11))
def test_any_duration_written_comes_back(milliseconds: int) -> None:
    duration = Duration(milliseconds / 1000)
    assert duration.milliseconds == milliseconds
    if len(str(duration).split()[0]) <= 9:
        assert Duration.parse(str(duration)) == duration


def test_keep_means_for_ever(file: File) -> None:
    assert file.load({"control": {"retire_after": " Keep"}}).control.retire_after is None
    assert file.load({"control": {"retire_after": "0 s"}}).control.retire_after == Duration(0)


def test_spark_conf_quoted_dotted_and_from_the_environment(file: File) -> None:
    content = '[spark.conf]\nspark.a.b = 4\n"spark.c" = true\nspark.d = 0.5\nspark.e = "x"\n'
    conf = file.load(content).spark.conf
    assert conf == {"spark.a.b": "4", "spark.c": "true", "spark.d": "0.5", "spark.e": "x"}
    environ = {"LIVEBOARD_SPARK_CONF": '"spark.a.b" = 5\nspark.f = "Y"'}
    assert file.load(content, environ).spark.conf == {**conf, "spark.a.b": "5", "spark.f": "Y"}


@pytest.mark.parametrize("how", ["left", " LEFT", "Inner ", "aSoF"])
def test_how_in_any_case_with_blanks(how: str) -> None:
    join = load(environ={"LIVEBOARD_BOARD_JOINS_FINAL_UI_HOW": how}).board.joins["final_ui"]
    assert join.how == how.strip().lower()


PORT = "expected an integer from 0 to 65535, found"
PROTOCOL = 'expected "PLAINTEXT", "SSL", "SASL_PLAINTEXT" or "SASL_SSL", found'
SERVERS = 'expected "embedded" or host:port (several separated by commas), found'
INTERVAL = 'expected a duration above zero such as "5 minutes", "900 s" or "500 ms", found'
RETIRE = 'expected a duration such as "5 minutes" or "900 s", or "keep", found'
FILLED = "expected a text that is not empty, found"
BYTES = "expected an integer from 1 to 8388608, found"
CONDITIONS = 'expected a list of conditions such as [["balance", "<", 0]], found'
RECEIVERS = 'expected a list of "topic:NAME" and of http or https URLs, found'
HISTORY = 'expected an integer from 1 to 100000, or "all", found'
NAME = 'expected a name of letters, digits and "_" that does not begin with a digit, up to 200 long, found'
OWN_NAME = "expected a name that liveboard does not use itself, found"
TOPIC_CHARACTERS = 'expected a topic name (1 to 249 letters, digits, ".", "_" or "-")'
TOPIC = 'expected a topic name (1 to 249 letters, digits, ".", "_" or "-"), found'
TOPIC_OR_NONE = f"{TOPIC.removesuffix(', found')}, or nothing for the board's own, found"
FOREIGN = 'expected a topic that the board "liveboard" does not write itself, found'
BOARD_NAME = 'expected a name of up to 30 letters, digits, "_" or "-" that begins with a letter or digit, found'
TYPE = "(string, boolean, int, bigint, double, decimal(p,s), date, timestamp, json or binary)"


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        ("kafka.port", "x", f'{PORT} "x"'),
        ("kafka.port", 65536, f"{PORT} 65536"),
        ("kafka.port", -1, f"{PORT} -1"),
        ("kafka.port", True, f"{PORT} true"),
        ("kafka.port", 1.0, f"{PORT} 1.0"),
        ("kafka.port", "9092", f'{PORT} "9092"'),
        ("kafka.start_from", "first", 'expected "earliest" or "latest", found "first"'),
        ("kafka.security_protocol", "TLS", f'{PROTOCOL} "TLS"'),
        ("kafka.bootstrap_servers", "host", f'{SERVERS} "host"'),
        ("kafka.bootstrap_servers", "a:1,,b:2", f'{SERVERS} "a:1,,b:2"'),
        ("kafka.bootstrap_servers", ["a:1"], f"{SERVERS} an array"),
        ("spark.master", " ", f'{FILLED} " "'),
        ("spark.checkpoint_interval", 300, f"{INTERVAL} 300"),
        ("spark.checkpoint_interval", "0 s", f'{INTERVAL} "0 s"'),
        ("control.retire_after", "for ever", f'{RETIRE} "for ever"'),
        ("control.topic", "a b", f'{TOPIC_OR_NONE} "a b"'),
        ("control.topic", "liveboard-status", f'{FOREIGN} "liveboard-status"'),
        ("board.name", "a.b", f'{BOARD_NAME} "a.b"'),
        ("board.name", "", f'{BOARD_NAME} ""'),
        ("server.host", "", f'{FILLED} ""'),
        ("server", 5, "expected a table, found 5"),
        ("storage.dir", "", 'expected a path, found ""'),
        (
            "storage.checkpoints",
            "s3a://key:secret@bucket",
            "expected an address without a login, which belongs into storage.s3.access_key and secret_key, "
            "found one with it",
        ),
        ("storage.dir", {"a": 1}, "expected a path, found a table"),
        ("spark.conf", 5, "expected a table of spark.* keys, found 5"),
        ("board.sources", 5, "expected a table, found 5"),
        ("board.sources.users", "x", 'expected a table, found "x"'),
        (
            "board.sources.users.schema",
            "a bigit",
            f'expected a type for "a" {TYPE}, found "bigit", did you mean bigint?',
        ),
        ("board.sources.users.on_error", "skip", 'expected "reject" or "null", found "skip"'),
        ("board.sources.users.max_value_bytes", 0, f"{BYTES} 0"),
        ("board.sources.users.max_value_bytes", 8_388_609, f"{BYTES} 8388609"),
        ("board.sources.users.table", "users-ui", f'{NAME} "users-ui"'),
        ("board.sources.users.table", "t" * 201, f'{NAME} "{"t" * 99}…'),
        ("board.sources.users.table", "Rejects_UI", f'{OWN_NAME} "Rejects_UI"'),
        ("board.sources.users.topic", "", f'{TOPIC} ""'),
        ("board.sources.users.topic", "a b", f'{TOPIC} "a b"'),
        ("board.sources.users.topic", "..", f'{TOPIC} ".."'),
        ("board.sources.users.topic", "t" * 250, f'{TOPIC} "{"t" * 99}…'),
        ("board.sources.users.topic", "liveboard.g1.x", f'{FOREIGN} "liveboard.g1.x"'),
        (
            "board.sources.users.topic",
            "liveboard-control",
            'expected a topic other than that of control messages, found "liveboard-control"',
        ),
        (
            "board.joins.final_ui.left",
            "user",
            'expected a source (users, accounts), found "user", did you mean users?',
        ),
        ("board.joins.final_ui.right", "users", 'expected a source other than the left one, found "users"'),
        (
            "board.joins.final_ui.on",
            "age",
            'expected a column of accounts (userId, accountType, balance), found "age", did you mean balance?',
        ),
        (
            "board.alerts.overdrawn.table",
            "control_raw",
            "expected a table of the pipeline (users_ui, accounts_ui, final_ui, user_account, rejects_ui),"
            ' found "control_raw", did you mean accounts_ui?',
        ),
        ("board.alerts.overdrawn.when", [], f"{CONDITIONS} an array"),
        ("board.alerts.overdrawn.when", "balance < 0", f'{CONDITIONS} "balance < 0"'),
        (
            "board.alerts.overdrawn.when",
            [["balanc", "<", 0]],
            'expected a column (userId, name, email, age, accountType, balance, ts), found "balanc"',
        ),
        ("board.alerts.overdrawn.when", [["balance", "<", "0"]], 'expected a number for "balance", found "0"'),
        ("board.alerts.overdrawn.for", "0 s", f'{INTERVAL} "0 s"'),
        ("board.alerts.overdrawn.notify", ["pager"], f"{RECEIVERS} an array"),
        (
            "board.alerts.overdrawn.notify",
            ["topic:users"],
            'expected a topic that nobody else on the board reads or writes, found "users"',
        ),
        ("board.alerts.overdrawn.secret", 5, "expected a text, found a number or boolean"),
        ("board.joins.final_ui.how", "outer", 'expected "left", "inner" or "asof", found "outer"'),
        ("board.joins.final_ui.history", 0, f"{HISTORY} 0"),
        ("board.joins.final_ui.history", True, f"{HISTORY} true"),
        ("board.joins.final_ui.history", "some", f'{HISTORY} "some"'),
    ],
)
def test_wrong_values(file: File, key: str, value: Any, problem: str) -> None:
    content: Raw = {"board": default_board()}
    *path, last = key.split(".")
    table = content
    for word in path:
        table = table.setdefault(word, {})
    table[last] = value
    assert file.problems(content) == [f"{key}: {problem} (FILE)"]


@pytest.mark.parametrize(
    ("source", "line"),
    [
        (
            {"topic": "accounts"},
            "board.sources.accounts.topic: expected a topic of its own,"
            ' found "accounts" as in board.sources.users.topic',
        ),
        (
            {"table": "Accounts_UI"},
            "board.sources.accounts.table: expected a table name of its own,"
            ' found "accounts_ui" as in board.sources.users.table',
        ),
        (
            {"table": "FINAL_ui"},
            'board.joins.final_ui: expected a table name of its own, found "final_ui" as in board.sources.users.table',
        ),
    ],
)
def test_topics_and_tables_are_distinct(file: File, source: Raw, line: str) -> None:
    board = default_board()
    board["sources"]["users"] |= source
    assert file.problems({"board": board}) == [f"{line} (FILE)"]


@pytest.mark.parametrize(
    ("conf", "problem"),
    [
        ({"spark.x": [1]}, "expected texts, numbers or booleans, found something else in spark.x"),
        ({"executor": {"memory": "2g"}}, 'expected keys that begin with "spark.", found executor.memory'),
    ],
)
def test_wrong_spark_conf(file: File, conf: Raw, problem: str) -> None:
    assert file.problems({"spark": {"conf": conf}}) == [f"spark.conf: {problem} (FILE)"]


def default_board() -> Raw:
    board = config.default_board()
    return {
        part: {
            name: {k: v for k, v in vars(item).items() if k not in ("name", "columns") and v not in (0, None)}
            for name, item in tables.items()
        }
        for part, tables in vars(board).items()
        if part in ("sources", "joins")
    } | {"alerts": default_tables()["alerts"]}


@pytest.mark.parametrize(
    ("type_", "reason"),
    [
        ("double", "rounding makes equal doubles differ"),
        ("timestamp", "two events hardly ever share a microsecond"),
        ("json", "the same document can be written in many ways"),
        ("binary", "bytes are content that nobody can read, and no name of anything"),
    ],
)
def test_types_that_are_no_key(file: File, type_: str, reason: str) -> None:
    board = {part: tables for part, tables in default_board().items() if part != "aggregates"}
    for source in board["sources"].values():
        source["schema"] = f"userId {type_}"
    lines = file.problems({"board": board})
    assert len(lines) == 4  # two joins of two sources
    assert f"found {type_} in users: {reason}" in lines[0]
    assert "string, boolean, int, bigint, decimal or date" in lines[0]


def test_a_key_has_one_type(file: File) -> None:
    board = default_board()
    board["sources"]["users"]["schema"] = "userId int"
    assert file.problems({"board": board})[0] == (
        "board.joins.final_ui.on: expected a column of the same type in both sources,"
        " found int in users and string in accounts (FILE)"
    )


PRODUCTS: Raw = {"topic": "products", "schema": "sku string, shop int, price double", "table": "products_ui"}


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ({"mode": "upsert"}, "expected the column, or columns, that tell the rows apart, found nothing"),
        ({"mode": "upsert", "key": []}, "expected the column, or columns, that tell the rows apart, found nothing"),
        ({"mode": "upsert", "key": ["sku", "sku"]}, "expected every column once, found sku, sku"),
        ({"mode": "upsert", "key": 7}, 'expected a column such as "userId", or a list of columns, found 7'),
        (
            {"mode": "upsert", "key": "sk"},
            'expected a column of products (sku, shop, price), found "sk", did you mean sku?',
        ),
        (
            {"mode": "upsert", "key": "price"},
            "expected a column of type string, boolean, int, bigint, decimal or date, found double in price: "
            "rounding makes equal doubles differ",
        ),
        (
            {"key": "sku"},
            'expected no key where mode is "append": every record is a row of its own; '
            'found "sku", set mode = "upsert" to use it',
        ),
    ],
)
def test_b38_wrong_keys_of_tables_by_key(file: File, source: Raw, line: str) -> None:
    board = {"sources": {"products": {**PRODUCTS, **source}}}
    assert file.problems({"board": board}) == [f"board.sources.products.key: {line} (FILE)"]


def test_b38_a_database_is_a_table_by_key_and_needs_its_key(file: File) -> None:
    board = {"sources": {"products": {**PRODUCTS, "format": "debezium"}}}
    assert file.problems({"board": board}) == [
        "board.sources.products.key: expected the column, or columns, that tell the rows apart, found nothing (FILE)"
    ]
    board["sources"]["products"]["key"] = "sku"
    assert file.load({"board": board}).board.sources["products"].by_key


@pytest.mark.parametrize("key", ["shop", ["sku", "shop"]])
def test_b38_a_table_by_key_is_joined_on_its_key(file: File, key: str | list[str]) -> None:
    orders = {"topic": "orders", "schema": "sku string, amount int", "table": "orders_ui"}
    sources = {"orders": orders, "products": {**PRODUCTS, "mode": "upsert", "key": key}}
    join = {"left": "orders", "right": "products", "on": "sku", "how": "left"}
    found = ", ".join(f'"{name}"' for name in ([key] if isinstance(key, str) else key))
    assert file.problems({"board": {"sources": sources, "joins": {"joined": join}}}) == [
        f"board.joins.joined.on: expected the key of products ({found}), since a table by key is joined on it, "
        'found "sku" (FILE)'
    ]


@pytest.mark.parametrize(("key", "columns"), [("sku", ("sku",)), (["shop", "sku"], ("shop", "sku"))])
def test_b38_a_key_has_one_column_or_several(file: File, key: str | list[str], columns: tuple[str, ...]) -> None:
    board = {"sources": {"products": {**PRODUCTS, "mode": "upsert", "key": key}}}
    assert file.load({"board": board}).board.sources["products"].key == columns
    environ = {variable(("board", "sources", "products", "key")): "sku,shop"}
    assert file.load({"board": board}, environ).board.sources["products"].key == ("sku", "shop")


def test_names_of_sources_and_joins(file: File) -> None:
    board = default_board()
    board["sources"]["Users"] = {"topic": "u2", "schema": "a int", "table": "t2"}
    board["sources"]["a-b"] = {"topic": "u3", "schema": "a int", "table": "t3"}
    board["joins"]["control_raw"] = board["joins"]["final_ui"]
    lines = file.problems({"board": board})
    assert [line.split(",")[0] for line in lines] == [
        "board.sources.a-b: expected a name of letters",
        "board.sources.Users: expected a source name of its own",
        "board.joins.control_raw: expected a name that liveboard does not use itself",
    ]


def test_topics_differ_by_case(file: File) -> None:
    board = default_board()
    board["sources"]["users"]["topic"] = "Accounts"
    assert file.load({"board": board}).board.sources["users"].topic == "Accounts"


def test_a_board_needs_a_source(file: File) -> None:
    lines = file.problems({"board": {"joins": default_board()["joins"]}})
    assert lines == ["board.sources: expected at least one source, found none (FILE)"]


def test_a_source_needs_its_keys(file: File) -> None:
    lines = file.problems({"board": {"sources": {"s": {"topic": "t"}}}})
    assert [line.split(":")[0] for line in lines] == ["board.sources.s.table", "board.sources.s.schema"]
    assert all("found nothing (FILE)" in line for line in lines)


def test_everything_that_is_wrong_is_said_at_once_with_its_place(file: File) -> None:
    board = default_board()
    board["sources"]["users"]["schema"] = "userId strng"
    board["joins"]["final_ui"]["right"] = "account"
    content = {"kafka": {"port": 1, "prot": 2}, "server": {"port": "x"}, "board": board}
    lines = file.problems(content, {"LIVEBOARD_KAFKA_PORT": "many", "LIVEBOARD_NO": "1"})
    assert [line.split(":")[0] for line in lines] == [
        "LIVEBOARD_NO",
        "kafka.prot",
        "kafka.port",
        "server.port",
        "board.sources.users.schema",
        "board.joins.final_ui.right",
    ]
    assert lines[2] == 'kafka.port: expected an integer from 0 to 65535, found "many" (LIVEBOARD_KAFKA_PORT)'
    assert lines[3].endswith("(FILE)")


def test_a_problem_is_one_line_whatever_it_quotes(file: File) -> None:
    board = default_board()
    board["joins"]["final_ui"]["left"] = "us\ners\u2028"
    (line,) = file.problems({"board": board})
    assert 'found "us\\ners\\u2028"' in line


def test_a_view_is_checked_against_the_tables_that_it_names(file: File) -> None:
    def problems(**views: dict[str, Any]) -> list[str]:
        return [line.partition(" (FILE)")[0] for line in file.problems({"board": {"views": views}})]

    good = {"sql": "SELECT userId, max(ts) AS newest FROM users_ui GROUP BY 1"}
    assert list(file.load({"board": {"views": {"good": good}}}).board.views) == ["good"]
    assert problems(good=good, of_good={"sql": "SELECT nothing FROM good"})[0].startswith("board.views.of_good.sql: ")
    (line,) = problems(bad={"sql": "SELECT * FROM nowhere"})
    assert line.startswith("board.views.bad.sql: expected a table (users_ui, accounts_ui, final_ui, user_account, ")
    assert line.endswith('found "nowhere"')
    assert "expected one SELECT statement" in problems(bad={"sql": "DROP TABLE users_ui"})[0]
    assert "syntax error" in problems(bad={"sql": "SELEC"})[0]
    assert "depends on the tables alone" in problems(bad={"sql": "SELECT now()"})[0]
    assert "as key, found" in problems(bad={"sql": "FROM users_ui", "key": "nothing"})[0]
    assert "expected a table name of its own" in problems(users_ui={"sql": "SELECT 1"})[0]


# What is documented.


def test_documented_keys_are_all_and_only_the_keys(file: File) -> None:
    keys = config.documented_keys()
    assert len(set(keys)) == len(keys)
    assert {"kafka.sasl.client_secret", "spark.conf", "board", "board.joins.<name>.history"} <= set(keys)
    named = [key for key in keys if not any(part in key for part in (".joins.", ".aggregates.", ".keys.", ".views."))]
    named = [key.replace("alerts.<name>", "alerts.overdrawn").replace("<name>", "users") for key in named]
    environ = {variable(tuple(key.split("."))): "" for key in named}
    # every name is known, whatever is wrong with the empty values
    assert not [line for line in file.problems("", environ) if "unknown" in line]


def test_avro_needs_a_registry_or_a_schema_file(file: File) -> None:
    source: Raw = {"topic": "o", "table": "o_ui", "schema": "id bigint", "format": "avro"}
    assert file.problems({"board": {"sources": {"o": source}}}) == [
        'board.sources.o.format: expected a registry.url or an avro_schema_file for "avro", found neither (FILE)'
    ]
    with_file = {**source, "avro_schema_file": "o.avsc"}
    assert file.load({"board": {"sources": {"o": with_file}}}).board.sources["o"].avro_schema_file == "o.avsc"
    with_registry: Raw = {"registry": {"url": "http://r"}, "board": {"sources": {"o": source}}}
    assert file.load(with_registry).board.sources["o"].format == "avro"
    (line,) = file.problems({"board": {"sources": {"o": {**with_file, "format": "json"}}}})
    assert line.startswith("board.sources.o.avro_schema_file: expected no schema of Avro")
