import dataclasses
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from liveboard import config
from liveboard.config import Board, ConfigError, Duration, Join, KafkaSettings, Secret, Settings, Source, load
from liveboard.config_env import variable
from liveboard.contract.names import RESERVED_TABLES
from liveboard.contract.schema import Column
from liveboard.errors import LiveboardError

Raw = dict[str, Any]

SHARED_TMP = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


def toml(tables: Mapping[str, Any], at: str = "") -> str:
    """The tables as TOML."""
    values = {key: value for key, value in tables.items() if not isinstance(value, Mapping)}
    lines = [f"[{at}]"] if at else []
    lines += [f"{toml_string(key)} = {toml_value(value)}" for key, value in values.items()]
    for key, value in tables.items():
        if isinstance(value, Mapping):
            lines.append(toml(value, f"{at}.{toml_string(key)}" if at else toml_string(key)))
    return "\n".join(lines) + "\n"


def toml_value(value: Any) -> str:
    return toml_string(value) if isinstance(value, str) else json.dumps(value)


def toml_string(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def leaves(tables: Mapping[str, Any], at: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for key, value in tables.items():
        if isinstance(value, Mapping) and (*at, key) != ("spark", "conf"):
            yield from leaves(value, (*at, key))
        else:
            yield (*at, key), value


def environment(raw: Raw) -> dict[str, str]:
    return {variable(key): toml(v) if isinstance(v, dict) else str(v) for key, v in leaves(raw)}


def setting(loaded: Settings, key: tuple[str, ...]) -> Any:
    value: Any = loaded
    for word in key:
        value = value[word] if isinstance(value, Mapping) else getattr(value, word)
    return value


class File:
    """A configuration file of the test's."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def load(self, content: str | Raw, environ: Mapping[str, str] = MappingProxyType({})) -> Settings:
        self.path.write_text(content if isinstance(content, str) else toml(content), encoding="utf-8")
        return load(self.path, environ)

    def problems(self, content: str | Raw, environ: Mapping[str, str] = MappingProxyType({})) -> list[str]:
        with pytest.raises(ConfigError) as caught:
            self.load(content, environ)
        return str(caught.value).replace(str(self.path), "FILE").splitlines()


@pytest.fixture
def file(tmp_path: Path) -> File:
    return File(tmp_path / "some.toml")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


# What can be configured, at random.

WORDS = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,10}", fullmatch=True)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
SECRETS = TEXTS
TOPICS = st.from_regex(r"[a-zA-Z0-9_-][a-zA-Z0-9._-]{0,20}", fullmatch=True).filter(
    lambda topic: not topic.startswith("liveboard")
)
PORTS = st.integers(0, 65535)
DURATIONS = st.builds(
    lambda n, unit: f"{n}{unit}",
    st.integers(1, 999),
    st.sampled_from([" ms", "s", " minutes", " H", " days"]),
)
HOWS = st.sampled_from(["left", "inner", "asof"])


@st.composite
def kafkas(draw: st.DrawFn) -> Raw:
    raw: Raw = draw(
        st.fixed_dictionaries(
            {
                "bootstrap_servers": st.sampled_from(["a:9092", "a.b:1,[::1]:2", "10.0.0.1:9092, b:9093"]),
                "security_protocol": st.sampled_from(["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]),
            },
            optional={"port": PORTS, "start_from": st.sampled_from(["earliest", "latest"])},
        )
    )
    if raw["security_protocol"].startswith("SASL"):
        login = st.fixed_dictionaries(
            {
                "mechanism": st.sampled_from(["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]),
                "username": TEXTS,
                "password": SECRETS,
            }
        )
        oauth = st.fixed_dictionaries(
            {
                "mechanism": st.just("OAUTHBEARER"),
                "token_endpoint_url": st.sampled_from(["http://a/t", "https://idp.example:8443/x?y=z"]),
                "client_id": TEXTS,
                "client_secret": SECRETS,
            },
            optional={"scope": TEXTS},
        )
        raw["sasl"] = draw(login | oauth)
    if raw["security_protocol"].endswith("SSL"):
        pair = st.fixed_dictionaries({"cert_file": TEXTS, "key_file": TEXTS}, optional={"key_password": SECRETS})
        raw["ssl"] = draw(st.fixed_dictionaries({}, optional={"ca_file": TEXTS})) | draw(pair | st.just({}))
    return raw


@st.composite
def boards(draw: st.DrawFn) -> Raw:
    names = draw(st.lists(WORDS, min_size=2, max_size=4, unique_by=str.lower))
    free = WORDS.filter(lambda name: name.lower() not in RESERVED_TABLES)
    tables = draw(st.lists(free, min_size=len(names) + 2, max_size=len(names) + 2, unique_by=str.lower))
    topics = draw(st.lists(TOPICS, min_size=len(names), max_size=len(names), unique=True))
    type_ = draw(st.sampled_from(["string", "boolean", "int", "bigint", "date"]))
    options = st.fixed_dictionaries(
        {},
        optional={
            "on_error": st.sampled_from(["reject", "null"]),
            "max_value_bytes": st.integers(1, 8_388_608),
        },
    )
    sources = {
        name: {"topic": topic, "schema": f"`the key` {type_}, x double", "table": table, **draw(options)}
        for name, topic, table in zip(names, topics, tables, strict=False)
    }
    joins = {
        table: {
            "left": names[0],
            "right": names[1],
            "on": "the key",
            "how": draw(HOWS),
            **draw(st.fixed_dictionaries({}, optional={"salt": st.integers(1, 1024)})),
        }
        for table in draw(st.sampled_from([[], tables[-1:], tables[-2:]]))
    }
    return {"sources": sources, "joins": joins}


RAWS = st.fixed_dictionaries(
    {},
    optional={
        "kafka": kafkas(),
        "spark": st.fixed_dictionaries(
            {},
            optional={
                "master": st.sampled_from(["local", "spark://h:7077"]),
                "checkpoint_interval": DURATIONS,
                "conf": st.dictionaries(
                    WORDS.map("spark.{}".format), TEXTS | st.booleans() | st.integers(), max_size=3
                ),
            },
        ),
        "server": st.fixed_dictionaries({}, optional={"host": WORDS, "port": PORTS, "psk": SECRETS}),
        "storage": st.fixed_dictionaries({"dir": WORDS}),
        "control": st.fixed_dictionaries({}, optional={"topic": TOPICS, "retire_after": DURATIONS | st.just("keep")}),
    },
).filter(lambda raw: raw.get("control", {}).get("topic") not in ("users", "accounts"))


def as_setting(key: tuple[str, ...], value: Any) -> Any:
    """What a raw value is expected to become."""
    if key[-1] in ("psk", "password", "client_secret", "key_password"):
        return Secret(value)
    if key[-1] in ("checkpoint_interval", "retire_after"):
        return None if value == "keep" else Duration.parse(value)
    if key[-1] == "dir":
        return Path(value)
    if key[-1] == "conf":
        return {k: str(v).lower() if isinstance(v, bool) else str(v) for k, v in value.items()}
    return value


@SHARED_TMP
@given(RAWS, boards())
def test_any_settings_in_a_file_come_back(file: File, raw: Raw, board: Raw) -> None:
    raw = {**raw, "control": {"topic": "liveboard-control", **raw.get("control", {})}}
    if raw["control"]["topic"] in {source["topic"] for source in board["sources"].values()}:
        raw["control"]["topic"] = "another-" + raw["control"]["topic"]
    loaded = file.load({**raw, "board": board})
    for key, value in leaves({**raw, "board": board}):
        assert setting(loaded, key) == as_setting(key, value), key
    assert list(loaded.board.sources) == list(board["sources"])
    assert list(loaded.board.joins) == list(board["joins"])
    assert all(join.name == name for name, join in loaded.board.joins.items())


@SHARED_TMP
@given(RAWS)
def test_the_environment_can_say_all_that_a_file_can(file: File, raw: Raw) -> None:
    assert load(environ=environment(raw)) == file.load(raw)


@SHARED_TMP
@given(boards(), boards(), st.data())
def test_the_environment_changes_single_keys_of_a_board(
    file: File, board: Raw, other: Raw, data: st.DataObject
) -> None:
    assert load(environ={"LIVEBOARD_BOARD": toml(board)}) == file.load({"board": board})
    # the whole board of the variable, not a mixture with the file's
    assert file.load({"board": other}, {"LIVEBOARD_BOARD": toml(board)}) == file.load({"board": board})
    name = data.draw(st.sampled_from(sorted(board["sources"])))
    environ = {
        f"LIVEBOARD_BOARD_SOURCES_{name.upper()}_TOPIC": "one-of-its-own",
        f"LIVEBOARD_BOARD_SOURCES_{name.upper()}_MAX_VALUE_BYTES": "77",
    }
    changed = file.load({"board": board}, environ).board.sources[name]
    assert (changed.topic, changed.max_value_bytes) == ("one-of-its-own", 77)
    assert changed.table == board["sources"][name]["table"]


SECTIONS = [(), ("kafka",), ("kafka", "ssl"), ("spark",), ("server",), ("storage",), ("control",), ("board",)]


@SHARED_TMP
@given(st.sampled_from(SECTIONS), TEXTS, st.sampled_from(["x", 1, {"a": 1}]))
def test_any_unknown_key_is_refused_and_the_nearest_named(
    file: File, section: tuple[str, ...], word: str, value: Any
) -> None:
    keys = [tuple(key.split(".")) for key in config.documented_keys()]
    siblings = {key[len(section)] for key in keys if key[: len(section)] == section and key != section}
    assume(word not in siblings)
    raw: Raw = {word: value}
    for name in reversed(section):
        raw = {name: raw}
    (line,) = file.problems(raw)
    before, _, nearest = line.removesuffix(" (FILE)").rpartition(": unknown key, the nearest known one is ")
    found = before.removeprefix(".".join([*section, ""]))
    assert word == (json.loads(found) if found.startswith('"') else found)
    assert tuple(nearest.split(".")) in {(*section, sibling) for sibling in siblings}


@given(WORDS.filter(lambda word: word.upper() != "CONFIG"))
def test_any_unknown_variable_is_refused_and_the_nearest_named(word: str) -> None:
    name = f"LIVEBOARD_{word}"
    assume(name not in {variable(tuple(key.split("."))) for key in config.documented_keys()})
    with pytest.raises(ConfigError) as caught:
        load(environ={name: "1"})
    assert str(caught.value).startswith(f"{name}: unknown variable, the nearest known one is LIVEBOARD_")


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("LIVEBOARD_KAFKA_BOOTSTRAP_SERVER", "LIVEBOARD_KAFKA_BOOTSTRAP_SERVERS"),
        ("LIVEBOARD_BOARD_SOURCES_USER_TOPIC", "LIVEBOARD_BOARD_SOURCES_USERS_TOPIC"),
        ("LIVEBOARD_SERVER_PSK_FIL", "LIVEBOARD_SERVER_PSK_FILE"),
        ("LIVEBOARD_KAFKA_PORT_FILE", "LIVEBOARD_KAFKA_PORT"),
    ],
)
def test_the_nearest_variable(name: str, nearest: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(environ={name: "1"})
    assert str(caught.value) == f"{name}: unknown variable, the nearest known one is {nearest}"


@pytest.mark.parametrize(
    ("content", "nearest"),
    [
        (
            "[kafka]\nboostrap_servers = 'a:1'",
            "kafka.boostrap_servers: unknown key, the nearest known one is kafka.bootstrap_servers",
        ),
        ("[sever]\nport = 1", "sever: unknown key, the nearest known one is server"),
        ("[kafka.sals]\nmechanism = 'PLAIN'", "kafka.sals: unknown key, the nearest known one is kafka.sasl"),
    ],
)
def test_the_nearest_key(file: File, content: str, nearest: str) -> None:
    assert file.problems(content) == [f"{nearest} (FILE)"]


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
    assert (loaded.control.topic, loaded.control.retire_after) == ("liveboard-control", Duration(900))
    assert loaded.board == Board(
        sources={
            "users": Source(
                name="users",
                topic="users",
                schema="userId string, name string, email string, age bigint",
                table="users_ui",
                on_error="reject",
                max_value_bytes=1_048_576,
            ),
            "accounts": Source(
                name="accounts",
                topic="accounts",
                schema="userId string, accountType string, balance double",
                table="accounts_ui",
            ),
        },
        joins={
            "final_ui": Join(name="final_ui", left="users", right="accounts", on="userId", how="left", salt=1),
            "user_account": Join(name="user_account", left="accounts", right="users", on="userId", how="asof"),
        },
    )
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
SALT = "expected an integer from 1 to 1024, found"
NAME = 'expected a name of letters, digits and "_" that does not begin with a digit, up to 200 long, found'
OWN_NAME = "expected a name that liveboard does not use itself, found"
TOPIC_CHARACTERS = 'expected a topic name (1 to 249 letters, digits, ".", "_" or "-")'
TOPIC = f'{TOPIC_CHARACTERS} that does not begin with "liveboard.", found'
TYPE = "(string, boolean, int, bigint, double, date or timestamp)"


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
        ("control.topic", "liveboard.x", f'{TOPIC} "liveboard.x"'),
        ("server.host", "", f'{FILLED} ""'),
        ("server", 5, "expected a table, found 5"),
        ("storage.dir", "", 'expected a path, found ""'),
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
        ("board.sources.users.topic", "liveboard.g1.x", f'{TOPIC} "liveboard.g1.x"'),
        (
            "board.sources.users.topic",
            "liveboard-control",
            'expected a topic other than control.topic, found "liveboard-control"',
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
        ("board.joins.final_ui.how", "outer", 'expected "left", "inner" or "asof", found "outer"'),
        ("board.joins.final_ui.salt", 0, f"{SALT} 0"),
        ("board.joins.final_ui.salt", 1025, f"{SALT} 1025"),
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
        part: {name: {k: v for k, v in vars(item).items() if k != "name"} for name, item in tables.items()}
        for part, tables in vars(board).items()
    }


@pytest.mark.parametrize(
    ("type_", "reason"),
    [
        ("double", "rounding makes equal doubles differ"),
        ("timestamp", "two events hardly ever share a microsecond"),
    ],
)
def test_types_that_are_no_key(file: File, type_: str, reason: str) -> None:
    board = default_board()
    for source in board["sources"].values():
        source["schema"] = f"userId {type_}"
    lines = file.problems({"board": board})
    assert len(lines) == 4  # two joins of two sources
    assert f"found {type_} in users: {reason}" in lines[0]
    assert "string, boolean, int, bigint or date" in lines[0]


def test_a_key_has_one_type(file: File) -> None:
    board = default_board()
    board["sources"]["users"]["schema"] = "userId int"
    assert file.problems({"board": board})[0] == (
        "board.joins.final_ui.on: expected a column of the same type in both sources,"
        " found int in users and string in accounts (FILE)"
    )


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
    assert [line.split(":")[0] for line in lines] == ["board.sources.s.schema", "board.sources.s.table"]
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


# How to log in.


@pytest.mark.parametrize(
    ("kafka", "problems"),
    [
        (
            {"security_protocol": "SASL_SSL"},
            ['kafka.sasl: expected a section because kafka.security_protocol is "SASL_SSL", found nothing'],
        ),
        (
            {"sasl": {"mechanism": "PLAIN", "username": "a", "password": "b"}},
            ['kafka.sasl: expected no such section because kafka.security_protocol is "PLAINTEXT", found one'],
        ),
        (
            {"security_protocol": "SASL_SSL", "sasl": {"username": "a"}},
            [
                'kafka.sasl.mechanism: expected "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512" or "OAUTHBEARER",'
                " found nothing"
            ],
        ),
        (
            {"security_protocol": "SASL_SSL", "sasl": {"mechanism": "PLAIN", "username": "a"}},
            ['kafka.sasl.password: expected a value because kafka.sasl.mechanism is "PLAIN", found nothing'],
        ),
        (
            {"security_protocol": "SASL_SSL", "sasl": {"mechanism": "OAUTHBEARER", "client_secret": "x"}},
            [
                "kafka.sasl.token_endpoint_url: expected a value"
                ' because kafka.sasl.mechanism is "OAUTHBEARER", found nothing',
                'kafka.sasl.client_id: expected a value because kafka.sasl.mechanism is "OAUTHBEARER", found nothing',
            ],
        ),
        (
            {"security_protocol": "SASL_SSL", "sasl": {"mechanism": "PLAIN", "token_endpoint_url": "idp/x"}},
            ['kafka.sasl.token_endpoint_url: expected an http or https URL, found "idp/x"'],
        ),
        (
            {"ssl": {"ca_file": "x"}},
            ['kafka.ssl: expected no such section because kafka.security_protocol is "PLAINTEXT", found one'],
        ),
        (
            {"security_protocol": "SSL", "ssl": {"key_file": "x"}},
            ["kafka.ssl.cert_file: expected a file because kafka.ssl.key_file has one, found nothing"],
        ),
        (
            {"security_protocol": "SSL", "bootstrap_servers": "embedded"},
            ['kafka.security_protocol: expected "PLAINTEXT" for the embedded broker, found "SSL"'],
        ),
    ],
)
def test_security_must_be_complete(file: File, kafka: Raw, problems: list[str]) -> None:
    content = {"kafka": {"bootstrap_servers": "a:1", **kafka}}
    assert file.problems(content) == [f"{problem} (FILE)" for problem in problems]


def test_what_is_missing_is_blamed_on_what_asks_for_it() -> None:
    environ = {"LIVEBOARD_KAFKA_BOOTSTRAP_SERVERS": "a:1", "LIVEBOARD_KAFKA_SECURITY_PROTOCOL": "SASL_SSL"}
    with pytest.raises(ConfigError, match=r"^kafka.sasl: .*found nothing \(LIVEBOARD_KAFKA_SECURITY_PROTOCOL\)$"):
        load(environ=environ)


HASH = "scrypt$n=32768,r=8,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"


def test_keys_of_the_server(file: File, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("from a file\n")
    keys: Raw = {
        "wall": {"role": "viewer", "tables": ["final_ui", "users_ui"]},
        "desk": {"role": "admin", "hash": HASH},
    }
    environ = {"LIVEBOARD_SERVER_KEYS_WALL_KEY_FILE": "secret", "LIVEBOARD_SERVER_ORIGINS": "https://a.b, http://c:1"}
    server = file.load({"server": {"keys": keys}}, environ).server
    assert server.keys["wall"] == config.KeySettings(
        name="wall", role="viewer", key=Secret("from a file"), tables=("final_ui", "users_ui")
    )
    assert server.keys["desk"] == config.KeySettings(name="desk", role="admin", hash=Secret(HASH))
    assert server.origins == ("https://a.b", "http://c:1")
    assert "from a file" not in repr(server)
    assert HASH not in repr(server)


@pytest.mark.parametrize(
    ("server", "problem"),
    [
        ({"keys": {"a": {"key": "x"}}}, 'server.keys.a.role: expected "viewer" or "admin", found nothing'),
        (
            {"keys": {"a": {"key": "x", "role": "king"}}},
            'server.keys.a.role: expected "viewer" or "admin", found "king"',
        ),
        (
            {"keys": {"a": {"role": "viewer"}}},
            "server.keys.a: expected either a key or a hash, as `liveboard key` makes them, found neither",
        ),
        (
            {"keys": {"a": {"role": "viewer", "key": "x", "hash": HASH}}},
            "server.keys.a: expected either a key or a hash, as `liveboard key` makes them, found both",
        ),
        (
            {"keys": {"a": {"role": "viewer", "hash": "5f4dcc3b5aa765d61d8327deb882cf99"}}},
            "server.keys.a.hash: expected a hash that `liveboard key` has made, found a text",
        ),
        (
            {"psk": "x", "keys": {"a": {"role": "viewer", "key": "x"}}},
            "server.keys.a.key: expected a key of its own, found one that is used twice",
        ),
        (
            {"keys": {"a": {"role": "viewer", "key": "x", "tables": "final_ui"}}},
            'server.keys.a.tables: expected a list of table names, found "final_ui"',
        ),
        (
            {"tls_cert_file": "x"},
            "server.tls_key_file: expected a file because server.tls_cert_file has one, found nothing",
        ),
        (
            {"origins": ["*"]},
            'server.origins: expected a list of origins such as "https://board.example.com", in lower case, '
            "found an array",
        ),
        (
            {"trusted_proxies": ["localhost"]},
            'server.trusted_proxies: expected a list of addresses or networks such as "10.0.0.0/8", found an array',
        ),
        ({"limits": {"viewers": 0}}, "server.limits.viewers: expected an integer from 1 to 1000000, found 0"),
    ],
)
def test_the_server_must_be_safe(file: File, server: Raw, problem: str) -> None:
    assert file.problems({"server": server}) == [f"{problem} (FILE)"]


# Secrets.


def test_a_secret_in_a_file_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("pass word \n\n")
    assert load(environ={"LIVEBOARD_SERVER_PSK_FILE": "key"}).server.psk.reveal() == "pass word \n"


def test_secret_files_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "bytes").write_bytes(b"\xff")
    for name, reason in (("none", "No such file or directory"), ("bytes", "it is not UTF-8")):
        with pytest.raises(ConfigError) as caught:
            load(environ={"LIVEBOARD_SERVER_PSK_FILE": name})
        found = f"found {name}: {reason} (LIVEBOARD_SERVER_PSK_FILE)"
        assert str(caught.value) == f"server.psk: expected a file that can be read, {found}"


def test_a_secret_twice(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("from-file")
    environ = {"LIVEBOARD_SERVER_PSK": "from-variable", "LIVEBOARD_SERVER_PSK_FILE": "key"}
    with pytest.raises(ConfigError) as caught:
        load(environ=environ)
    assert str(caught.value) == (
        "server.psk: expected one of LIVEBOARD_SERVER_PSK and LIVEBOARD_SERVER_PSK_FILE, found both"
    )


SECRET_KEYS = [
    ("server", "psk"),
    ("kafka", "sasl", "password"),
    ("kafka", "sasl", "client_secret"),
    ("kafka", "ssl", "key_password"),
]


@pytest.mark.parametrize("key", SECRET_KEYS, ids=".".join)
def test_secrets_are_never_shown(file: File, key: tuple[str, ...]) -> None:
    environ = {
        "LIVEBOARD_KAFKA_BOOTSTRAP_SERVERS": "a:1",
        "LIVEBOARD_KAFKA_SECURITY_PROTOCOL": "SASL_SSL",
        "LIVEBOARD_KAFKA_SASL_MECHANISM": "PLAIN",
        "LIVEBOARD_KAFKA_SASL_USERNAME": "ada",
        "LIVEBOARD_KAFKA_SASL_PASSWORD": "hunter2",
        "LIVEBOARD_SPARK_CONF": 'spark.ssl.keyPassword = "hunter2"',
        variable(key): "hunter2",
    }
    loaded = load(environ=environ)
    assert setting(loaded, key) == Secret("hunter2")
    assert "hunter2" not in repr(loaded) + str(loaded) + f"{setting(loaded, key)}"
    assert "hunter2" not in repr(dataclasses.asdict(loaded.kafka)) + repr(dataclasses.asdict(loaded.server))
    broken = {**environ, "LIVEBOARD_SERVER_PORT": "x", variable((*key, "x")): "hunter2"}
    with pytest.raises(ConfigError) as caught:
        load(environ=broken)
    assert "hunter2" not in str(caught.value) + repr(caught.value)
    wrong: Raw = {key[-1]: ["hunter2"]}
    for word in reversed(key[:-1]):
        wrong = {word: wrong}
    lines = file.problems(wrong)
    assert any(line.startswith(f"{'.'.join(key)}: expected a text, found an array") for line in lines)
    assert "hunter2" not in "".join(lines)


def test_a_number_is_no_secret_but_stays_one(file: File) -> None:
    assert file.problems({"server": {"psk": 4711}}) == ["server.psk: expected a text, found a number or boolean (FILE)"]


# What is documented.


def test_documented_keys_are_all_and_only_the_keys(file: File) -> None:
    keys = config.documented_keys()
    assert len(set(keys)) == len(keys)
    assert {"kafka.sasl.client_secret", "spark.conf", "board", "board.joins.<name>.salt"} <= set(keys)
    named = [key for key in keys if ".joins." not in key and ".keys." not in key]
    environ = {variable(tuple(key.replace("<name>", "users").split("."))): "" for key in named}
    # every name is known, whatever is wrong with the empty values
    assert not [line for line in file.problems("", environ) if "unknown" in line]
