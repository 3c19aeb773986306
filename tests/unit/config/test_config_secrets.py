"""Logins, keys and secrets in the configuration."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from configured import File, Raw, setting

from liveboard import config
from liveboard.config import ConfigError, Secret, load
from liveboard.config.environment import variable


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
    ("registry", "password"),
    ("registry", "token"),
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
    if key[0] == "registry":
        environ["LIVEBOARD_REGISTRY_URL"] = "http://r"
    if key == ("registry", "password"):
        environ["LIVEBOARD_REGISTRY_USERNAME"] = "ada"
    loaded = load(environ=environ)
    assert setting(loaded, key) == Secret("hunter2")
    assert "hunter2" not in repr(loaded) + str(loaded) + f"{setting(loaded, key)}"
    assert "hunter2" not in repr(dataclasses.asdict(loaded.kafka)) + repr(dataclasses.asdict(loaded.registry)) + repr(
        dataclasses.asdict(loaded.server)
    )
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


@pytest.mark.parametrize(
    ("registry", "problem"),
    [
        (
            {"username": "ada", "password": "x"},
            "registry.url: expected an address, since other keys of [registry] are set",
        ),
        (
            {"url": "http://r", "username": "ada"},
            "registry.password: expected a value because registry.username has one",
        ),
        ({"url": "http://r", "password": "x"}, "registry.username: expected a value because registry.password has one"),
        (
            {"url": "http://r", "username": "ada", "password": "x", "token": "y"},
            "registry.token: expected either a token or a username and password, found both",
        ),
        ({"url": "http://ada:hunter2@r"}, "registry.url: expected an address without a login"),
        ({"url": "r:8081"}, 'registry.url: expected an http or https URL, found "r:8081"'),
    ],
)
def test_a_registry_and_its_login_belong_together(file: File, registry: Raw, problem: str) -> None:
    (line,) = file.problems({"registry": registry})
    assert line.startswith(problem)
    assert "hunter2" not in line
