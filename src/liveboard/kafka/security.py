"""The one mapping from the [kafka] section to the properties of both Kafka clients."""

from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key

from liveboard.config import KafkaSettings, SaslSettings, SslSettings
from liveboard.contract.errors import LiveboardError

_MODULES = "org.apache.kafka.common.security"
_LOGIN_MODULES = {
    "PLAIN": f"{_MODULES}.plain.PlainLoginModule",
    "SCRAM-SHA-256": f"{_MODULES}.scram.ScramLoginModule",
    "SCRAM-SHA-512": f"{_MODULES}.scram.ScramLoginModule",
    "OAUTHBEARER": f"{_MODULES}.oauthbearer.OAuthBearerLoginModule",
}
# Not the one in the package "secured", which is deprecated in 3.9 and gone from 4.0 on.
_OAUTH_HANDLER = f"{_MODULES}.oauthbearer.OAuthBearerLoginCallbackHandler"


def librdkafka(kafka: KafkaSettings, bootstrap: str) -> dict[str, str]:
    """The properties that let librdkafka connect to the bootstrap servers."""
    conf = {"bootstrap.servers": bootstrap, "security.protocol": kafka.security_protocol}
    if _uses_ssl(kafka):
        conf |= {
            "ssl.ca.location": kafka.ssl.ca_file,
            "ssl.certificate.location": kafka.ssl.cert_file,
            "ssl.key.location": kafka.ssl.key_file,
            "ssl.key.password": kafka.ssl.key_password.reveal(),
        }
    if kafka.sasl and _uses_sasl(kafka):
        conf["sasl.mechanism"] = kafka.sasl.mechanism
        if kafka.sasl.mechanism == "OAUTHBEARER":
            conf |= {
                "sasl.oauthbearer.method": "oidc",
                "sasl.oauthbearer.token.endpoint.url": kafka.sasl.token_endpoint_url,
                "sasl.oauthbearer.client.id": kafka.sasl.client_id,
                "sasl.oauthbearer.client.secret": kafka.sasl.client_secret.reveal(),
                "sasl.oauthbearer.scope": kafka.sasl.scope,
                "https.ca.location": kafka.sasl.ca_file,
            }
        else:
            conf |= {"sasl.username": kafka.sasl.username, "sasl.password": kafka.sasl.password.reveal()}
    return _given(conf)


def java(kafka: KafkaSettings, bootstrap: str) -> dict[str, str]:
    """The properties that let a Java client connect to the bootstrap servers.

    PEM files go in as text: they are read here and need not exist on the machines of a Spark cluster.
    """
    conf = {"bootstrap.servers": bootstrap, "security.protocol": kafka.security_protocol}
    if _uses_ssl(kafka) and kafka.ssl.ca_file:
        conf |= {
            "ssl.truststore.type": "PEM",
            "ssl.truststore.certificates": _certificates("ssl.ca_file", kafka.ssl.ca_file),
        }
    if _uses_ssl(kafka) and kafka.ssl.cert_file:
        conf |= {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.certificate.chain": _certificates("ssl.cert_file", kafka.ssl.cert_file),
            "ssl.keystore.key": _private_key(kafka.ssl),
        }
    if kafka.sasl and _uses_sasl(kafka):
        conf |= {"sasl.mechanism": kafka.sasl.mechanism, "sasl.jaas.config": _jaas(kafka.sasl)}
        if kafka.sasl.mechanism == "OAUTHBEARER":
            conf |= {
                "sasl.login.callback.handler.class": _OAUTH_HANDLER,
                "sasl.oauthbearer.token.endpoint.url": kafka.sasl.token_endpoint_url,
            }
    return _given(conf)


def java_system_properties(kafka: KafkaSettings) -> dict[str, str]:
    """What must be set in every Java process that connects: since 4.0 Kafka asks no token endpoint without it."""
    endpoint = kafka.sasl.token_endpoint_url if kafka.sasl and _uses_sasl(kafka) else ""
    return _given({"org.apache.kafka.sasl.oauthbearer.allowed.urls": endpoint})


def _uses_ssl(kafka: KafkaSettings) -> bool:
    return kafka.security_protocol.endswith("SSL")


def _uses_sasl(kafka: KafkaSettings) -> bool:
    return kafka.security_protocol.startswith("SASL_")


def _given(conf: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in conf.items() if value}


def _jaas(sasl: SaslSettings) -> str:
    if sasl.mechanism == "OAUTHBEARER":
        options = {
            "clientId": sasl.client_id,
            "clientSecret": sasl.client_secret.reveal(),
            "scope": sasl.scope,
        }
        if sasl.ca_file:
            # Java's client takes these for the token endpoint from here, and not from the properties around it.
            authorities = _certificates("sasl.ca_file", sasl.ca_file)
            options |= {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": authorities}
    else:
        options = {"username": sasl.username, "password": sasl.password.reveal()}
    words = [f'{name}="{_escaped(value)}"' for name, value in _given(options).items()]
    return f"{_LOGIN_MODULES[sasl.mechanism]} required {' '.join(words)};"


def _escaped(value: str) -> str:
    # Kafka reads JAAS texts with java.io.StreamTokenizer, in whose strings a bare line end is the end.
    for character, escape in (("\\", r"\\"), ('"', r"\""), ("\n", r"\n"), ("\r", r"\r")):
        value = value.replace(character, escape)
    return value


def _private_key(ssl: SslSettings) -> str:
    """The key as Java wants it. Java 17 cannot decrypt what OpenSSL encrypts, nor read the older forms of keys."""
    password = ssl.key_password.reveal().encode() or None
    try:
        key = load_pem_private_key(_content("ssl.key_file", ssl.key_file).encode(), password)
    except TypeError:
        expected = "no password, since the key is not encrypted" if password else "the password of the encrypted key"
        raise LiveboardError(f"kafka.ssl.key_password: expected {expected} in {ssl.key_file}") from None
    except (ValueError, UnsupportedAlgorithm):
        other = " of the password kafka.ssl.key_password" if password else ""
        raise LiveboardError(
            f"kafka.ssl.key_file: expected a PEM file with a private key{other}, found none in {ssl.key_file}"
        ) from None
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def _certificates(key: str, file: str) -> str:
    text = _content(key, file)
    if "-----BEGIN CERTIFICATE-----" not in text:
        raise LiveboardError(f'kafka.{key}: expected a PEM file with "BEGIN CERTIFICATE", found none in {file}')
    return text


def _content(key: str, file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not a text"
        raise LiveboardError(f"kafka.{key}: expected a PEM file, found {file}: {reason}") from None
