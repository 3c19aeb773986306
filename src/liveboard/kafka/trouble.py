"""Why Kafka cannot be used, in one sentence that names the setting at fault.

Both clients only say that a connection failed, late or in words of their own, so the likely causes are tried here: the
broker's and our own certificate, and the token endpoint. Nothing of a secret is ever in a sentence.
"""

from __future__ import annotations

import base64
import contextlib
import json
import re
import socket
import ssl
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from confluent_kafka import KafkaError
from cryptography import x509

from liveboard.contract.errors import LiveboardError
from liveboard.contract.names import Names

_TIMEOUT_S = 3.0
# A broker that refuses our certificate says so after the handshake; one that takes it waits for us to speak.
_ALERT_S = 1.0
_EXPIRED = 10
_WRONG_NAME = (62, 63, 64)

_LOGIN_REFUSED = re.compile(r"SASL authentication error|SaslAuthenticationException|Authentication failed", re.I)
_MECHANISM_REFUSED = re.compile(
    r"Unsupported SASL mechanism|UnsupportedSaslMechanismException|not enabled in the server"
)
_NOT_PERMITTED = re.compile(r"Not authorized to access topics: \[([^\]]*)\]")
_REFUSED_LOGIN = (KafkaError._AUTHENTICATION, KafkaError._SSL, KafkaError.SASL_AUTHENTICATION_FAILED)
_NO_CONNECTION = re.compile(
    r"AuthenticationException|SSLHandshakeException|LoginException|OAuth|Failed to construct kafka|"
    r"Failed to create new KafkaAdminClient|Timed out waiting for a node assignment|TimeoutException"
)


class KafkaUnavailable(LiveboardError):
    """Kafka does not answer us at all; once the cause is mended, the same question may be answered."""


class Complaints:
    """The `error_cb` of a librdkafka client: keeps what it says of a login that is refused."""

    def __init__(self, config: Mapping[str, str]) -> None:
        self._config = config
        self._refusal = ""

    def __call__(self, error: KafkaError) -> None:
        """The client says this."""
        if error.code() in _REFUSED_LOGIN:
            self._refusal = error.str()

    def forget(self) -> None:
        """What was said is over."""
        self._refusal = ""

    @property
    def cause(self) -> str:
        """What is found to be wrong with us, and has to be mended by somebody; empty when nothing is."""
        return find(self._config, self._refusal)

    def unavailable(self, said: str) -> KafkaUnavailable:
        """The error for the client, which gets no answer and said this."""
        return unavailable(self._config, self._refusal or said)


class _Place(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


def unavailable(config: Mapping[str, str], said: str) -> KafkaUnavailable:
    """The error for a librdkafka client with this configuration that gets no answer and said this."""
    servers = config["bootstrap.servers"]
    cause = find(config, said) or f"kafka.bootstrap_servers: expected a Kafka broker at {servers}, found none: {said}"
    return KafkaUnavailable(cause)


def find(config: Mapping[str, str], said: str) -> str:
    """What is wrong with the login, the certificates or the token endpoint; empty when nothing is found."""
    return _connection(config) or _token(config) or _login(config, said)


def of_spark(config: Mapping[str, str], names: Names, text: str) -> str:
    """What an error of Spark means, if it is about the connection or permissions; otherwise the text itself."""
    if denied := _NOT_PERMITTED.search(text):
        topics = denied[1].split(", ")
        return permission(topics, "write" if all(map(names.owns, topics)) else "read")
    if _NO_CONNECTION.search(text):
        return find(config, text) or text
    return text


def permission(topics: Iterable[str], operation: str = "read") -> str:
    """That we may not do something with topics."""
    names = sorted(topics)
    rule = f"an ACL that allows {operation.upper()} to liveboard's user"
    return f"expected permission to {operation} the Kafka topics {names}, found none; add {rule}"


def _login(config: Mapping[str, str], said: str) -> str:
    mechanism, servers = config.get("sasl.mechanism", ""), config["bootstrap.servers"]
    if _MECHANISM_REFUSED.search(said):
        return f"kafka.sasl.mechanism: expected one that {servers} offers, found {mechanism} refused; set another"
    if not mechanism or not _LOGIN_REFUSED.search(said):
        return ""
    if mechanism == "OAUTHBEARER":
        return (
            f"kafka.sasl.scope: expected a token that {servers} accepts, found it refused; compare the token's scope, "
            "audience and issuer with what the broker expects"
        )
    return (
        f"kafka.sasl.username, kafka.sasl.password: expected a {mechanism} login that {servers} accepts, found "
        f"{config.get('sasl.username')!r} refused; set the right name and password"
    )


def _connection(config: Mapping[str, str]) -> str:
    for place in _places(config["bootstrap.servers"]):
        with contextlib.suppress(OSError):
            socket.create_connection(place, _TIMEOUT_S).close()
            return _tls(config, place) if "SSL" in _protocol(config) else _no_tls(config, place)
    return ""


def _protocol(config: Mapping[str, str]) -> str:
    return config.get("security.protocol", "PLAINTEXT")


def _places(servers: str) -> Iterable[_Place]:
    for server in servers.split(","):
        host, _, port = server.strip().rpartition(":")
        yield _Place(host.strip("[]"), int(port))


def _tls(config: Mapping[str, str], place: _Place) -> str:
    """Whether the broker shows a certificate that we trust, and takes ours."""
    ca_file, cert_file = config.get("ssl.ca.location"), config.get("ssl.certificate.location")
    try:
        context = ssl.create_default_context(cafile=ca_file)
        if cert_file:
            context.load_cert_chain(cert_file, config.get("ssl.key.location"), config.get("ssl.key.password", ""))
        with (
            socket.create_connection(place, _TIMEOUT_S) as plain,
            context.wrap_socket(plain, server_hostname=place.host) as secure,
        ):
            secure.settimeout(_ALERT_S)
            secure.recv(1)
    except ssl.SSLCertVerificationError as error:
        return _untrusted(f"the broker {place}", error, "kafka.ssl.ca_file", ca_file)
    except ssl.SSLEOFError:
        return (
            f"kafka.security_protocol: expected TLS at {place} for {_protocol(config)}, found a broker that "
            "does not speak it there; set the port of its TLS listener, or a protocol without SSL"
        )
    except ssl.SSLError as error:
        if "ALERT" in (error.reason or ""):
            return _refused_certificate(place, cert_file, (error.reason or "").rpartition("ALERT_")[2])
    except OSError:
        pass
    return ""


def _no_tls(config: Mapping[str, str], place: _Place) -> str:
    """Whether the broker wants TLS where we do not use it."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with socket.create_connection(place, _TIMEOUT_S) as plain, context.wrap_socket(plain):
            protocol = _protocol(config)
            wanted = protocol.replace("PLAINTEXT", "SSL")
            return (
                f"kafka.security_protocol: expected a broker without TLS at {place} for {protocol}, found one that "
                f"speaks TLS; set {wanted}, or the port of another listener"
            )
    except OSError:
        return ""


def _untrusted(who: str, error: ssl.SSLCertVerificationError, key: str, ca_file: str | None) -> str:
    if error.verify_code == _EXPIRED:
        return f"expected a valid certificate of {who}, found one that has expired; renew it there"
    if error.verify_code in _WRONG_NAME:
        return f"expected a certificate of {who} for that name, found another ({error.verify_message}); use its name"
    trusted = ca_file or "the system's authorities"
    return (
        f"{key}: expected the authority that signed the certificate of {who}, found others in {trusted} "
        f"({error.verify_message}); set a PEM file with that authority"
    )


def _refused_certificate(place: _Place, cert_file: str | None, alert: str) -> str:
    if not cert_file:
        return (
            f"kafka.ssl.cert_file: expected a client certificate, since the broker {place} asks for one, found none; "
            "set kafka.ssl.cert_file and kafka.ssl.key_file"
        )
    end = _end_of(cert_file)
    if end and end < datetime.now(UTC):
        return (
            f"kafka.ssl.cert_file: expected a valid client certificate, found {cert_file}, which expired on "
            f"{end:%Y-%m-%d}; renew it"
        )
    return (
        f"kafka.ssl.cert_file: expected a client certificate that the broker {place} accepts, found {cert_file} "
        f"refused ({alert.replace('_', ' ').lower()}); use one of an authority that the broker trusts"
    )


def _end_of(cert_file: str) -> datetime | None:
    with contextlib.suppress(OSError, ValueError):
        return x509.load_pem_x509_certificate(Path(cert_file).read_bytes()).not_valid_after_utc
    return None


def _token(config: Mapping[str, str]) -> str:
    """Whether the token endpoint gives us a token."""
    url = config.get("sasl.oauthbearer.token.endpoint.url")
    if not url:
        return ""
    key, client = "kafka.sasl.token_endpoint_url", config["sasl.oauthbearer.client.id"]
    login = f"{client}:{config['sasl.oauthbearer.client.secret']}".encode()
    form = {"grant_type": "client_credentials", "scope": config.get("sasl.oauthbearer.scope", "")}
    data = urllib.parse.urlencode({name: value for name, value in form.items() if value}).encode()
    request = urllib.request.Request(url, data, {"Authorization": f"Basic {base64.b64encode(login).decode()}"})
    ca_file = config.get("https.ca.location")
    expected = f"{key}: expected a token from {url}"
    try:
        context = ssl.create_default_context(cafile=ca_file)
        with urllib.request.urlopen(request, timeout=_TIMEOUT_S, context=context) as answer:
            if "access_token" in json.load(answer):
                return ""
            return f"{expected}, found an answer without an access_token; set the token endpoint of the provider"
    except urllib.error.HTTPError as error:
        return _refused_token(error, url, client)
    except urllib.error.URLError as error:
        if isinstance(error.reason, ssl.SSLCertVerificationError):
            return _untrusted(f"the token endpoint {url}", error.reason, "kafka.sasl.ca_file", ca_file)
        late = isinstance(error.reason, TimeoutError)
        reason = f"no answer within {_TIMEOUT_S:.0f} s" if late else f"no answer ({error.reason})"
    except TimeoutError:
        reason = f"no answer within {_TIMEOUT_S:.0f} s"
    except (OSError, ValueError):
        reason = "something else"
    return f"{expected}, found {reason}; see that it runs, or set another address"


def _refused_token(error: urllib.error.HTTPError, url: str, client: str) -> str:
    code = ""
    with error, contextlib.suppress(ValueError, AttributeError):
        code = str(json.load(error).get("error", ""))[:100]
    found = f"{error.code} {code}".strip()
    if code == "invalid_scope":
        return f"kafka.sasl.scope: expected a scope that {url} knows, found {found}; set another"
    if error.code in (400, 401, 403):
        return (
            f"kafka.sasl.client_id, kafka.sasl.client_secret: expected a login that {url} accepts, found {client!r} "
            f"refused ({found}); set the right id and secret"
        )
    return f"kafka.sasl.token_endpoint_url: expected a token from {url}, found {found}; see that it runs"
