from pathlib import Path

import pytest
from certificates import Authority
from secured import CLIENT_SECRET, USER
from tokens import SCOPE, TokenEndpoint

from liveboard.contract.names import Names
from liveboard.kafka import trouble

NOBODY = {"bootstrap.servers": "127.0.0.1:1", "security.protocol": "SASL_SSL"}


def tokens_of(endpoint: TokenEndpoint, **changes: str) -> dict[str, str]:
    return {
        **NOBODY,
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.token.endpoint.url": endpoint.url,
        "sasl.oauthbearer.client.id": USER,
        "sasl.oauthbearer.client.secret": CLIENT_SECRET,
        "sasl.oauthbearer.scope": SCOPE,
        **changes,
    }


def test_what_spark_says_about_permissions_tells_the_operation() -> None:
    said = (
        "Task 0 failed: org.apache.kafka.common.errors.TopicAuthorizationException: Not authorized to access topics: "
    )
    expected = (
        "expected permission to {} the Kafka topics {}, found none; add an ACL that allows {} to liveboard's user"
    )
    read = trouble.of_spark(NOBODY, Names(), f"{said}[users, accounts]\n\tat x")
    assert read == expected.format("read", "['accounts', 'users']", "READ")
    written = trouble.of_spark(NOBODY, Names(), f"{said}[liveboard.g1.final_ui]")
    assert written == expected.format("write", "['liveboard.g1.final_ui']", "WRITE")


@pytest.mark.parametrize("said", ["No space left on device", "SaslAuthenticationException: but nobody is there to ask"])
def test_what_is_not_understood_stays_as_it_is(said: str) -> None:
    assert trouble.of_spark({**NOBODY, "security.protocol": "SSL"}, Names(), said) == said


def test_a_broker_that_is_away_is_no_trouble_of_ours() -> None:
    assert trouble.find(NOBODY, "") == ""
    error = trouble.unavailable(NOBODY, "Local: Broker transport failure")
    assert str(error).startswith("kafka.bootstrap_servers: expected a Kafka broker at 127.0.0.1:1, found none: Local:")


def test_a_token_endpoint_that_gives_tokens_is_fine(tmp_path: Path) -> None:
    authority = Authority(tmp_path, "authority")
    endpoint = TokenEndpoint({USER: CLIENT_SECRET}, authority.issue("endpoint"))
    try:
        assert trouble.find(tokens_of(endpoint, **{"https.ca.location": str(authority.ca)}), "") == ""
        refused = trouble.find(tokens_of(endpoint), "")
        assert refused.startswith("kafka.sasl.ca_file: expected the authority that signed the certificate of the token")
        assert "found others in the system's authorities" in refused
    finally:
        endpoint.close()


def test_a_token_that_the_broker_refuses_is_the_providers_matter() -> None:
    endpoint = TokenEndpoint({USER: CLIENT_SECRET})
    try:
        found = trouble.find(tokens_of(endpoint), 'SASL authentication error: {"status":"invalid_token"}')
        assert found.startswith("kafka.sasl.scope: expected a token that 127.0.0.1:1 accepts, found it refused;")
    finally:
        endpoint.close()
