"""Whatever can be configured comes back as it was written, and whatever cannot is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from configured import File, Raw, environment, leaves, setting, toml
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from liveboard import config
from liveboard.config import ConfigError, Duration, Secret, load
from liveboard.config.environment import variable
from liveboard.contract.names import RESERVED_TABLES

SHARED_TMP = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
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
            **draw(st.fixed_dictionaries({}, optional={"history": st.integers(1, 100_000) | st.just("all")})),
        }
        for table in draw(st.sampled_from([[], tables[-1:], tables[-2:]]))
    }
    return {"sources": sources, "joins": joins}


RAWS = st.fixed_dictionaries(
    # A cluster needs a place for checkpoints.
    {
        "storage": st.fixed_dictionaries(
            {"dir": WORDS, "checkpoints": st.sampled_from(["s3a://bucket/boards", "/my shared böard"])}
        )
    },
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
