import re
from dataclasses import replace
from pathlib import Path

import confluent_kafka
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, NoEncryption, PrivateFormat
from hypothesis import given
from hypothesis import strategies as st

from liveboard.config import KafkaSettings, SaslSettings, Secret, SslSettings
from liveboard.contract.errors import LiveboardError
from liveboard.kafka import security

SERVER = "broker:9092"
CERTIFICATE = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
ESCAPES = {"n": "\n", "r": "\r"}
KEY = ec.generate_private_key(ec.SECP256R1())


def key_text(form: PrivateFormat = PrivateFormat.PKCS8, password: str = "") -> str:
    encryption = BestAvailableEncryption(password.encode()) if password else NoEncryption()
    return KEY.private_bytes(Encoding.PEM, form, encryption).decode()


OAUTH = SaslSettings(
    mechanism="OAUTHBEARER",
    token_endpoint_url="https://idp/token",
    client_id="me",
    client_secret=Secret("s3cret"),
    scope="kafka",
)


def password_login(mechanism: str, username: str = "ada", password: str = "pw") -> SaslSettings:
    return SaslSettings(mechanism=mechanism, username=username, password=Secret(password))  # type: ignore[arg-type]


def jaas_options(text: str) -> dict[str, str]:
    """The options of a JAAS text by the rules of java.io.StreamTokenizer, with which Kafka reads it."""
    module, flag, rest = text.split(" ", 2)
    assert module.startswith("org.apache.kafka.common.security.")
    assert flag == "required"
    option = re.compile(r'([\w.]+)="((?:[^"\\\n\r]|\\.)*)"([ ;])')
    options: dict[str, str] = {}
    at, end = 0, ""
    while end != ";":
        found = option.match(rest, at)
        assert found, rest[at:]
        options[found[1]] = re.sub(r"\\(.)", lambda escape: ESCAPES.get(escape[1], escape[1]), found[2])
        at, end = found.end(), found[3]
    assert at == len(rest)
    return options


@pytest.fixture
def ssl(tmp_path: Path) -> SslSettings:
    for name, text in (("ca", CERTIFICATE), ("cert", CERTIFICATE), ("key", key_text(password="kpw"))):
        (tmp_path / f"{name}.pem").write_text(text)
    return SslSettings(
        ca_file=str(tmp_path / "ca.pem"),
        cert_file=str(tmp_path / "cert.pem"),
        key_file=str(tmp_path / "key.pem"),
        key_password=Secret("kpw"),
    )


def test_plaintext_is_all_there_is() -> None:
    expected = {"bootstrap.servers": SERVER, "security.protocol": "PLAINTEXT"}
    assert security.librdkafka(KafkaSettings(), SERVER) == expected
    assert security.java(KafkaSettings(), SERVER) == expected


def test_ssl_for_librdkafka_names_files(ssl: SslSettings) -> None:
    assert security.librdkafka(KafkaSettings(security_protocol="SSL", ssl=ssl), SERVER) == {
        "bootstrap.servers": SERVER,
        "security.protocol": "SSL",
        "ssl.ca.location": ssl.ca_file,
        "ssl.certificate.location": ssl.cert_file,
        "ssl.key.location": ssl.key_file,
        "ssl.key.password": "kpw",
    }


def test_ssl_for_java_holds_the_content_of_files(ssl: SslSettings) -> None:
    assert security.java(KafkaSettings(security_protocol="SSL", ssl=ssl), SERVER) == {
        "bootstrap.servers": SERVER,
        "security.protocol": "SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": CERTIFICATE,
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": CERTIFICATE,
        "ssl.keystore.key": key_text(),
    }


def test_ssl_without_files_trusts_the_system() -> None:
    kafka = KafkaSettings(security_protocol="SSL")
    assert security.java(kafka, SERVER) == {"bootstrap.servers": SERVER, "security.protocol": "SSL"}
    assert security.librdkafka(kafka, SERVER) == {"bootstrap.servers": SERVER, "security.protocol": "SSL"}


def test_a_pem_file_that_is_missing_or_is_another(ssl: SslSettings, tmp_path: Path) -> None:
    def message(ca_file: str = "", cert_file: str = "", key_file: str = "") -> str:
        ssl = SslSettings(ca_file=ca_file, cert_file=cert_file, key_file=key_file)
        kafka = KafkaSettings(security_protocol="SSL", ssl=ssl)
        with pytest.raises(LiveboardError) as caught:
            security.java(kafka, SERVER)
        return str(caught.value)

    assert "kafka.ssl.ca_file: expected a PEM file, found /no/such: No such file" in message(ca_file="/no/such")
    assert '"BEGIN CERTIFICATE", found none in' in message(ca_file=ssl.key_file)
    assert "kafka.ssl.key_file: expected a PEM file with a private key, found none in" in message(
        cert_file=ssl.cert_file, key_file=ssl.ca_file
    )


def test_java_gets_every_kind_of_key_in_the_one_form_that_it_reads(ssl: SslSettings, tmp_path: Path) -> None:
    def read(text: str, password: str) -> str:
        Path(ssl.key_file).write_text(text)
        changed = replace(ssl, key_password=Secret(password))
        return security.java(KafkaSettings(security_protocol="SSL", ssl=changed), SERVER)["ssl.keystore.key"]

    assert read(key_text(), "") == key_text()
    assert read(key_text(PrivateFormat.TraditionalOpenSSL), "") == key_text()
    assert read(key_text(PrivateFormat.TraditionalOpenSSL, "kpw"), "kpw") == key_text()
    for text, password, expected in [
        (key_text(password="kpw"), "", "kafka.ssl.key_password: expected the password of the encrypted key"),
        (key_text(password="kpw"), "wrong-one", "private key of the password kafka.ssl.key_password, found none"),
        (key_text(), "kpw", "kafka.ssl.key_password: expected no password, since the key is not encrypted"),
    ]:
        with pytest.raises(LiveboardError, match=expected) as caught:
            read(text, password)
        assert "kpw" not in str(caught.value)
        assert "wrong-one" not in str(caught.value)


@pytest.mark.parametrize(
    ("mechanism", "module"),
    [
        ("PLAIN", "plain.PlainLoginModule"),
        ("SCRAM-SHA-256", "scram.ScramLoginModule"),
        ("SCRAM-SHA-512", "scram.ScramLoginModule"),
    ],
)
def test_logins_with_a_password(mechanism: str, module: str) -> None:
    kafka = KafkaSettings(security_protocol="SASL_PLAINTEXT", sasl=password_login(mechanism))
    shared = {
        "bootstrap.servers": SERVER,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
    }
    assert security.librdkafka(kafka, SERVER) == {**shared, "sasl.username": "ada", "sasl.password": "pw"}
    assert security.java(kafka, SERVER) == {
        **shared,
        "sasl.jaas.config": f'org.apache.kafka.common.security.{module} required username="ada" password="pw";',
    }


def test_login_with_a_token_endpoint() -> None:
    kafka = KafkaSettings(security_protocol="SASL_SSL", sasl=OAUTH)
    shared = {
        "bootstrap.servers": SERVER,
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.token.endpoint.url": "https://idp/token",
    }
    assert security.librdkafka(kafka, SERVER) == {
        **shared,
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.client.id": "me",
        "sasl.oauthbearer.client.secret": "s3cret",
        "sasl.oauthbearer.scope": "kafka",
    }
    java = security.java(kafka, SERVER)
    options = jaas_options(java.pop("sasl.jaas.config"))
    assert options == {"clientId": "me", "clientSecret": "s3cret", "scope": "kafka"}
    handler = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
    assert java == {**shared, "sasl.login.callback.handler.class": handler}
    allowed = {"org.apache.kafka.sasl.oauthbearer.allowed.urls": "https://idp/token"}
    assert security.java_system_properties(kafka) == allowed
    assert security.java_system_properties(replace(kafka, security_protocol="SSL")) == {}


def test_a_token_endpoint_with_an_authority_of_its_own(ssl: SslSettings) -> None:
    kafka = KafkaSettings(security_protocol="SASL_SSL", sasl=replace(OAUTH, ca_file=ssl.ca_file))
    client, java = security.librdkafka(kafka, SERVER), security.java(kafka, SERVER)
    assert client["https.ca.location"] == ssl.ca_file
    options = jaas_options(java["sasl.jaas.config"])
    assert options["ssl.truststore.type"] == "PEM"
    assert options["ssl.truststore.certificates"] == CERTIFICATE
    # Brokers are not trusted by it.
    assert "ssl.ca.location" not in client
    assert "ssl.truststore.certificates" not in java


@given(st.text(min_size=1), st.text(alphabet="a\"\\\n\r;=' ", min_size=1))
def test_any_password_survives_the_jaas_text(username: str, password: str) -> None:
    sasl = password_login("PLAIN", username, password)
    java = security.java(KafkaSettings(security_protocol="SASL_PLAINTEXT", sasl=sasl), SERVER)
    assert jaas_options(java["sasl.jaas.config"]) == {"username": username, "password": password}


@pytest.mark.parametrize(
    "kafka",
    [
        KafkaSettings(),
        KafkaSettings(security_protocol="SSL"),
        KafkaSettings(security_protocol="SASL_SSL", sasl=password_login("SCRAM-SHA-512")),
        KafkaSettings(security_protocol="SASL_PLAINTEXT", sasl=OAUTH),
    ],
    ids=["plaintext", "ssl", "scram", "oauth"],
)
def test_librdkafka_knows_every_property(kafka: KafkaSettings) -> None:
    # only a client that never connects, because a real one would ask the token endpoint
    known = {**security.librdkafka(kafka, SERVER), "no.such.property": "x"}
    with pytest.raises(confluent_kafka.KafkaException) as caught:
        confluent_kafka.Producer(known)
    assert "no.such.property" in str(caught.value)
