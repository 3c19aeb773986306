"""The real broker with every kind of listener, logins, certificates and access control."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any, Self

from certificates import Authority
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from harness import PATIENCE_S, until
from ports import closed_port
from tokens import AUDIENCE, ISSUER, SCOPE, TokenEndpoint

from liveboard.config import KafkaSettings, SaslSettings, Secret, SslSettings
from liveboard.kafka.broker import Broker

USER = "liveboard"
PASSWORD = 'pass"word\\8c1f2e '
CLIENT_SECRET = "client-secret-5d0b7a"
KEY_PASSWORD = "key-password-f3a9c4"
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
_LISTENERS = ("SSL", "SASL_PLAINTEXT", "SASL_SSL", "EXPIRED")

# What liveboard needs, as docs/kafka-security.md says it.
_OWN = (AclOperation.CREATE, AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE)

_PROPERTIES = """
listeners={listeners}
advertised.listeners={advertised}
listener.security.protocol.map={protocols}
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS
ssl.keystore.type=PEM
ssl.keystore.location={certificate}
ssl.truststore.type=PEM
ssl.truststore.location={authority}
listener.name.ssl.ssl.client.auth=required
listener.name.expired.ssl.keystore.type=PEM
listener.name.expired.ssl.keystore.location={expired}
ssl.principal.mapping.rules=RULE:^CN=(.*)$/$1/
sasl.enabled.mechanisms={mechanisms}
sasl.oauthbearer.jwks.endpoint.url={jwks_url}
sasl.oauthbearer.expected.audience={audience}
sasl.oauthbearer.expected.issuer={issuer}
"""
_SECURITY = "org.apache.kafka.common.security"
_SASL = f"""\
listener.name.{{0}}.plain.sasl.jaas.config={_SECURITY}.plain.PlainLoginModule required user_{USER}="{{1}}";
listener.name.{{0}}.scram-sha-256.sasl.jaas.config={_SECURITY}.scram.ScramLoginModule required;
listener.name.{{0}}.scram-sha-512.sasl.jaas.config={_SECURITY}.scram.ScramLoginModule required;
listener.name.{{0}}.oauthbearer.sasl.jaas.config={_SECURITY}.oauthbearer.OAuthBearerLoginModule required;
listener.name.{{0}}.oauthbearer.sasl.server.callback.handler.class=\\
{_SECURITY}.oauthbearer.OAuthBearerValidatorCallbackHandler
"""


class SecuredBroker(Broker):
    """Anyone on its PLAINTEXT listener may do anything; on the others liveboard may do what it was granted."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory / "kafka", closed_port())
        self.authority = Authority(directory, "authority")
        self.stranger = Authority(directory, "stranger")
        self.tokens = TokenEndpoint({USER: CLIENT_SECRET})
        here = self.authority.issue("token-endpoint")
        self.secure_tokens = TokenEndpoint({USER: CLIENT_SECRET}, here, self.tokens.key)
        self.slow_tokens = TokenEndpoint({USER: CLIENT_SECRET})
        self.slow_tokens.slow.set()
        self._user = self.authority.issue(USER, password=KEY_PASSWORD)
        self._expired_user = self.authority.issue(USER, expired=True)
        self._strange_user = self.stranger.issue(USER)
        self._ports = {name: closed_port() for name in _LISTENERS}
        self._allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={self.tokens.jwks_url}"

    def start(self, show: Callable[[str], None] = lambda _: None, jvm: tuple[str, ...] = ()) -> None:
        super().start(show, (self._allowed,))
        self.root = AdminClient({"bootstrap.servers": self.bootstrap_servers, "log_level": 0})
        self.set_scram_password(PASSWORD)

    def set_scram_password(self, password: str) -> None:
        """Lets those in from now on who know this one; who is in stays."""
        for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
            login = UserScramCredentialUpsertion(USER, ScramCredentialInfo(mechanism, 4096), password.encode())
            self._wait(self.root.alter_user_scram_credentials([login]))

    @contextmanager
    def down(self) -> Iterator[None]:
        """Kafka alone, not the token endpoints."""
        super().stop()
        try:
            yield
        finally:
            super().start(jvm=(self._allowed,))

    def __enter__(self) -> Self:
        super().__enter__()
        return self

    def stop(self) -> None:
        super().stop()
        self.tokens.close()
        self.secure_tokens.close()
        self.slow_tokens.close()

    def grant(self, operation: AclOperation, topic: str, *, prefix: bool = False) -> None:
        """Lets liveboard do that to the topic, or to all that begin with its name."""
        self._create(_rule(operation, topic, prefix))

    def revoke(self, operation: AclOperation, topic: str) -> None:
        """Takes away what was granted for the topic."""
        self._delete(operation, topic, False, AclPermissionType.ALLOW)

    @contextmanager
    def denied(self, operation: AclOperation, topic: str, *, prefix: bool = False) -> Iterator[None]:
        """Forbids it for as long as the context lasts, whatever was granted."""
        self._create(_rule(operation, topic, prefix, AclPermissionType.DENY))
        try:
            yield
        finally:
            self._delete(operation, topic, prefix, AclPermissionType.DENY)

    def _create(self, rule: AclBinding) -> None:
        self._wait(self.root.create_acls([rule]))
        until(lambda: self._known(rule), "the rule")

    def _delete(self, operation: AclOperation, topic: str, prefix: bool, kind: AclPermissionType) -> None:
        rule = _rule(operation, topic, prefix, kind)
        self._wait(self.root.delete_acls([_only(rule)]))
        until(lambda: not self._known(rule), "the end of the rule")

    def _known(self, rule: AclBinding) -> bool:
        """Whether the broker goes by the rule: it is told a moment after its controller."""
        return rule in self.root.describe_acls(_only(rule)).result(PATIENCE_S)

    def grant_all(self, sources: Iterable[str], control: str) -> None:
        """All that a pipeline, a server and a swap need."""
        for operation in _OWN:
            self.grant(operation, "liveboard", prefix=True)
        for operation in (AclOperation.CREATE, AclOperation.READ, AclOperation.WRITE):
            self.grant(operation, control)
        for topic in sources:
            self.grant(AclOperation.READ, topic)

    def settings(self, protocol: str, mechanism: str = "") -> KafkaSettings:
        """How liveboard logs in there, with everything right."""
        sasl: SaslSettings | None = None
        if mechanism == "OAUTHBEARER":
            # Over TLS the token endpoint has a certificate of an own authority too.
            endpoint = self.secure_tokens if protocol == "SASL_SSL" else self.tokens
            ca_file = str(self.authority.ca) if protocol == "SASL_SSL" else ""
            sasl = SaslSettings(
                mechanism="OAUTHBEARER",
                token_endpoint_url=endpoint.url,
                client_id=USER,
                client_secret=Secret(CLIENT_SECRET),
                scope=SCOPE,
                ca_file=ca_file,
            )
        elif mechanism:
            sasl = SaslSettings(mechanism=mechanism, username=USER, password=Secret(PASSWORD))  # type: ignore[arg-type]
        ssl = SslSettings()
        if protocol in ("SSL", "SASL_SSL"):
            ssl = SslSettings(ca_file=str(self.authority.ca))
        if protocol == "SSL":
            own = {"cert_file": str(self._user.cert), "key_file": str(self._user.key)}
            ssl = replace(ssl, **own, key_password=Secret(KEY_PASSWORD))
        return KafkaSettings(
            bootstrap_servers=f"127.0.0.1:{self._ports[protocol]}",
            security_protocol=protocol,  # type: ignore[arg-type]
            sasl=sasl,
            ssl=ssl,
        )

    def with_certificate(self, kind: str) -> KafkaSettings:
        """SSL with the certificate of an "expired" user, or one that a "stranger" has signed."""
        certificate = {"expired": self._expired_user, "stranger": self._strange_user}[kind]
        own = {"cert_file": str(certificate.cert), "key_file": str(certificate.key)}
        right = self.settings("SSL")
        return replace(right, ssl=replace(right.ssl, **own, key_password=Secret()))

    def with_expired_broker(self) -> KafkaSettings:
        """SSL with everything right, but for the broker's own certificate."""
        return replace(self.settings("SSL"), bootstrap_servers=f"127.0.0.1:{self._ports['EXPIRED']}")

    def _write(self, name: str, text: str) -> None:
        if name == "server.properties":
            text += self._properties(text)
        super()._write(name, text)

    def _properties(self, text: str) -> str:
        """What goes over the properties of the embedded broker."""
        found = re.search(r"^listeners=(PLAINTEXT://\S+),(CONTROLLER://\S+)$", text, re.M)
        assert found
        more = [f"{name}://127.0.0.1:{port}" for name, port in self._ports.items()]
        protocols = {name: name for name in ("PLAINTEXT", *_LISTENERS)} | {"CONTROLLER": "PLAINTEXT", "EXPIRED": "SSL"}
        properties = _PROPERTIES.format(
            listeners=",".join([*found.groups(), *more]),
            advertised=",".join([found[1], *more]),
            protocols=",".join(f"{name}:{protocol}" for name, protocol in protocols.items()),
            certificate=self.authority.issue("broker").both,
            expired=self.authority.issue("broker", expired=True).both,
            authority=self.authority.ca,
            mechanisms=",".join(MECHANISMS),
            jwks_url=self.tokens.jwks_url,
            audience=AUDIENCE,
            issuer=ISSUER,
        )
        # Escaped for the JAAS text, and once more for the properties file.
        password = PASSWORD.replace("\\", "\\" * 4).replace('"', '\\\\"')
        return properties + "".join(_SASL.format(name, password) for name in ("sasl_plaintext", "sasl_ssl"))

    def _wait(self, futures: dict[Any, Any]) -> None:
        for future in futures.values():
            future.result(PATIENCE_S)


def _rule(operation: AclOperation, topic: str, prefix: bool, kind: AclPermissionType | None = None) -> AclBinding:
    pattern = ResourcePatternType.PREFIXED if prefix else ResourcePatternType.LITERAL
    allow = kind or AclPermissionType.ALLOW
    return AclBinding(ResourceType.TOPIC, topic, pattern, f"User:{USER}", "*", operation, allow)


def _only(rule: AclBinding) -> AclBindingFilter:
    resource = (rule.restype, rule.name, rule.resource_pattern_type)
    return AclBindingFilter(*resource, rule.principal, rule.host, rule.operation, rule.permission_type)


def variables(section: Any, prefix: str = "LIVEBOARD_KAFKA") -> dict[str, str]:
    """The environment that configures the section."""
    found: dict[str, str] = {}
    for field in fields(section):
        value, name = getattr(section, field.name), f"{prefix}_{field.name.upper()}"
        if is_dataclass(value):
            found |= variables(value, name)
        elif value:
            found[name] = value.reveal() if isinstance(value, Secret) else str(value)
    return found
