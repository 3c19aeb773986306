"""B4: every protocol and mechanism against a real broker that checks logins, certificates, tokens and permissions."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import boards
import pytest
from boards import FIRST_MS, with_suffix
from confluent_kafka.admin import AclOperation
from harness import Bench, Event, followed, until
from ports import closed_port
from pyspark.sql import SparkSession
from secured import CLIENT_SECRET, MECHANISMS, USER, SecuredBroker

from liveboard.commands import doctor
from liveboard.config import KafkaSettings, SaslSettings, Secret, ServerSettings, Settings, SslSettings, StorageSettings
from liveboard.contract.names import Names
from liveboard.kafka import security, trouble
from liveboard.kafka.admin import Admin
from liveboard.kafka.reader import Change, ChangelogReader
from liveboard.orchestrator.running import SPARK_ERRORS
from liveboard.pipeline import session
from liveboard.pipeline.generation import reason
from liveboard.pipeline.plan import Plan
from liveboard.sample import users
from liveboard.sample.producing import produce

NAMES = Names()

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1200)]

LOGINS = [("SSL", ""), *[(protocol, at) for protocol in ("SASL_PLAINTEXT", "SASL_SSL") for at in MECHANISMS]]
NOT_THE_SECRET = "another-2f6b90"
_numbers = count(1)


@pytest.mark.parametrize(("protocol", "mechanism"), LOGINS)
def test_b4_librdkafka_reads_and_writes_with_every_login(broker: SecuredBroker, protocol: str, mechanism: str) -> None:
    client = _librdkafka(broker.settings(protocol, mechanism))
    admin = Admin(client)
    topic = NAMES.changelog(f"g{next(_numbers)}", "final_ui")
    admin.create_changelogs([topic])
    assert admin.unreadable(["users", "accounts", topic]) == set()
    options = users.Options(users_topic=topic, accounts_topic=topic, count=3)
    assert produce(users.events(options), 0, client, threading.Event(), lambda _: None) == 3
    with ChangelogReader(client, [topic]) as reader:
        found: list[Change] = []
        while len(found) < 3:
            found += reader.read()
    admin.delete([topic])


@pytest.mark.parametrize(("protocol", "mechanism"), LOGINS)
def test_b4_spark_reads_and_writes_with_every_login(
    broker: SecuredBroker, spark: SparkSession, protocol: str, mechanism: str
) -> None:
    kafka = broker.settings(protocol, mechanism)
    options = _java(spark, kafka)
    topic = NAMES.changelog(f"g{next(_numbers)}", "final_ui")
    Admin({"bootstrap.servers": broker.bootstrap_servers}).create_changelogs([topic])
    # In SQL, because a list of Python's would be written by as many processes as there are slots.
    rows = spark.sql("select * from values ('a', '1'), ('b', '2') as (key, value)")
    rows.write.format("kafka").options(**options, topic=topic).save()
    found = spark.read.format("kafka").options(**options, subscribe=topic).load()
    assert sorted(bytes(row.value) for row in found.select("value").collect()) == [b"1", b"2"]


@pytest.mark.parametrize(
    ("protocol", "mechanism"),
    [("SSL", ""), ("SASL_SSL", "PLAIN"), ("SASL_PLAINTEXT", "SCRAM-SHA-512"), ("SASL_SSL", "OAUTHBEARER")],
)
def test_b4_events_become_rows_with_every_family_of_logins(
    broker: SecuredBroker, spark: SparkSession, checkpoint: Path, protocol: str, mechanism: str
) -> None:
    kafka = broker.settings(protocol, mechanism)
    board = with_suffix(boards.one_join("left"), f"{protocol}-{mechanism or 'mutual'}")
    for source in board.sources.values():
        broker.grant(AclOperation.READ, source.topic)
    _java(spark, kafka)

    class SecuredBench(Bench):
        def plan(self, start_from: str = "earliest") -> Plan:
            plain = super().plan(start_from)
            return replace(plain, kafka_options=security.java(kafka, kafka.bootstrap_servers))

    with closing(SecuredBench(broker.bootstrap_servers, board)) as bench:
        bench.create_topics()
        bench.produce([Event("users", b'{"userId":"u","name":"Ada"}', FIRST_MS)])
        with followed(spark, bench, checkpoint):
            bench.produce([Event("accounts", b'{"userId":"u","balance":1.5}', FIRST_MS)])
            table = bench.expect_oracle()["left"]
    assert next(iter(table.values()))[-2] == 1.5


def _other_password(broker: SecuredBroker, mechanism: str) -> KafkaSettings:
    sasl = SaslSettings(mechanism=mechanism, username=USER, password=Secret(NOT_THE_SECRET))  # type: ignore[arg-type]
    return replace(broker.settings("SASL_SSL", mechanism), sasl=sasl)


def _other_authority(broker: SecuredBroker) -> KafkaSettings:
    return replace(broker.settings("SASL_SSL", "PLAIN"), ssl=SslSettings(ca_file=str(broker.stranger.ca)))


def _other_port(broker: SecuredBroker, protocol: str, port_of: str) -> KafkaSettings:
    there = broker.settings(port_of, "PLAIN").bootstrap_servers
    return replace(broker.settings(protocol, "PLAIN"), bootstrap_servers=there)


def _tokens(broker: SecuredBroker, protocol: str = "SASL_PLAINTEXT", **changes: Any) -> KafkaSettings:
    right = broker.settings(protocol, "OAUTHBEARER")
    assert right.sasl
    return replace(right, sasl=replace(right.sasl, **changes))


# What is wrong, and the sentence; {} are the addresses and files of this run.
WRONG: dict[str, tuple[Callable[[SecuredBroker], KafkaSettings], str]] = {
    "plain password": (
        lambda broker: _other_password(broker, "PLAIN"),
        "kafka.sasl.username, kafka.sasl.password: expected a PLAIN login that {} accepts, found 'liveboard' refused; "
        "set the right name and password",
    ),
    "scram password": (
        lambda broker: _other_password(broker, "SCRAM-SHA-512"),
        "kafka.sasl.username, kafka.sasl.password: expected a SCRAM-SHA-512 login that {} accepts, found 'liveboard' "
        "refused; set the right name and password",
    ),
    "expired client": (
        lambda broker: broker.with_certificate("expired"),
        "kafka.ssl.cert_file: expected a valid client certificate, found {}, which expired on {}; renew it",
    ),
    "unknown client": (
        lambda broker: broker.with_certificate("stranger"),
        "kafka.ssl.cert_file: expected a client certificate that the broker {} accepts, found {} refused ({}); use one "
        "of an authority that the broker trusts",
    ),
    "no client certificate": (
        lambda broker: replace(broker.settings("SSL"), ssl=SslSettings(ca_file=str(broker.authority.ca))),
        "kafka.ssl.cert_file: expected a client certificate, since the broker {} asks for one, found none; set "
        "kafka.ssl.cert_file and kafka.ssl.key_file",
    ),
    "unknown authority": (
        _other_authority,
        "kafka.ssl.ca_file: expected the authority that signed the certificate of the broker {}, found others in {} "
        "({}); set a PEM file with that authority",
    ),
    "expired broker": (
        lambda broker: broker.with_expired_broker(),
        "expected a valid certificate of the broker {}, found one that has expired; renew it there",
    ),
    "no tls there": (
        lambda broker: _other_port(broker, "SASL_SSL", "SASL_PLAINTEXT"),
        "kafka.security_protocol: expected TLS at {} for SASL_SSL, found a broker that does not speak it there; set "
        "the port of its TLS listener, or a protocol without SSL",
    ),
    "tls there": (
        lambda broker: _other_port(broker, "SASL_PLAINTEXT", "SASL_SSL"),
        "kafka.security_protocol: expected a broker without TLS at {} for SASL_PLAINTEXT, found one that speaks TLS; "
        "set SASL_SSL, or the port of another listener",
    ),
    "token secret": (
        lambda broker: _tokens(broker, client_secret=Secret(NOT_THE_SECRET)),
        "kafka.sasl.client_id, kafka.sasl.client_secret: expected a login that {} accepts, found 'liveboard' refused "
        "(401 invalid_client); set the right id and secret",
    ),
    "token scope": (
        lambda broker: _tokens(broker, scope="other"),
        "kafka.sasl.scope: expected a scope that {} knows, found 400 invalid_scope; set another",
    ),
    "token endpoint down": (
        lambda broker: _tokens(broker, token_endpoint_url=f"http://127.0.0.1:{closed_port()}/token"),
        "kafka.sasl.token_endpoint_url: expected a token from {}, found no answer ({}); see that it runs, or set "
        "another address",
    ),
    "token endpoint slow": (
        lambda broker: _tokens(broker, token_endpoint_url=broker.slow_tokens.url),
        "kafka.sasl.token_endpoint_url: expected a token from {}, found no answer within 3 s; see that it runs, or set "
        "another address",
    ),
    "token endpoint of another authority": (
        lambda broker: _tokens(broker, "SASL_SSL", ca_file=str(broker.stranger.ca)),
        "kafka.sasl.ca_file: expected the authority that signed the certificate of the token endpoint {}, found others "
        "in {} ({}); set a PEM file with that authority",
    ),
}
# The Java client waits a minute or more for these: what it says in the end is translated like the rest.
SLOW_IN_JAVA = ("no tls there", "tls there", "token endpoint slow", "token endpoint down")


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_is_one_sentence_in_doctor(broker: SecuredBroker, tmp_path: Path, what: str) -> None:
    make, sentence = WRONG[what]
    lines: list[str] = []
    found = Settings(kafka=make(broker), storage=StorageSettings(dir=tmp_path), server=ServerSettings(port=0))
    assert not doctor.run(found, lines.append)
    assert _fits(sentence, _line(lines, "Kafka"))
    assert not [line for line in lines if NOT_THE_SECRET in line or CLIENT_SECRET in line]


@pytest.mark.parametrize("what", [what for what in WRONG if what not in SLOW_IN_JAVA])
def test_what_is_wrong_is_the_same_sentence_when_spark_finds_it(
    broker: SecuredBroker, spark: SparkSession, what: str
) -> None:
    make, sentence = WRONG[what]
    kafka = make(broker)
    impatient = {"kafka.default.api.timeout.ms": "4000", "kafka.request.timeout.ms": "2000"}
    options = {**_java(spark, kafka), **impatient, "fetchOffset.numRetries": "1"}
    with pytest.raises(SPARK_ERRORS) as caught:
        spark.read.format("kafka").options(**options, subscribe="users").load().collect()
    text = reason(caught.value)
    assert _fits(sentence, trouble.of_spark(_librdkafka(kafka), NAMES, text)), text


def test_missing_permissions_are_one_sentence_in_doctor(broker: SecuredBroker, tmp_path: Path) -> None:
    right = Settings(kafka=broker.settings("SSL"), storage=StorageSettings(dir=tmp_path), server=ServerSettings(port=0))

    def found() -> str:
        lines: list[str] = []
        doctor.run(right, lines.append)
        return _line(lines, "permissions")

    assert found() == "the topics may be read, and those of liveboard* written"
    for operation, topic, prefix, sentence in [
        (AclOperation.READ, "users", False, "read the Kafka topics ['users'], found none; add an ACL that allows READ"),
        (AclOperation.CREATE, "liveboard.", True, "create the Kafka topics ['liveboard.g0.control_raw'], found none;"),
    ]:
        with broker.denied(operation, topic, prefix=prefix):
            expected = f"expected permission to {sentence}"
            until(lambda expected=expected: found().startswith(expected), expected)  # type: ignore[misc]


def _line(lines: list[str], check: str) -> str:
    return next(line[25:] for line in lines if line[9:24].strip() == check)


def _fits(sentence: str, text: str) -> bool:
    return bool(re.fullmatch(re.escape(sentence).replace(r"\{\}", ".+"), text))


def _librdkafka(kafka: KafkaSettings) -> dict[str, str]:
    return security.librdkafka(kafka, kafka.bootstrap_servers)


def _java(spark: SparkSession, kafka: KafkaSettings) -> dict[str, str]:
    """The options of Spark's sources and sinks; the session is as the product makes it for these settings."""
    session.set_system_properties(spark, security.java_system_properties(kafka))
    return {f"kafka.{name}": value for name, value in security.java(kafka, kafka.bootstrap_servers).items()}
