"""Which files make a certificate, and what is said of those that do not."""

from __future__ import annotations

from pathlib import Path

import pytest
from authority import Authority

from liveboard.client.address import address
from liveboard.errors import LiveboardError
from liveboard.serving.tls import Certificate


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """With the certificates `one` and `two`, and `locked`, whose key has a password."""
    authority = Authority(tmp_path_factory.mktemp("tls"))
    for name, password in (("one", None), ("two", None), ("locked", b"secret")):
        authority.issue(authority.folder / f"{name}.crt", authority.folder / f"{name}.key", name, password)
    (authority.folder / "text").write_text("hello")
    (authority.folder / "broken").write_text("-----BEGIN CERTIFICATE-----\nhello\n-----END CERTIFICATE-----\n")
    return authority


CERT, KEY = "server.tls_cert_file", "server.tls_key_file"


@pytest.mark.parametrize(
    ("cert", "key", "said"),
    [
        ("none", "one.key", f"{CERT}: expected a PEM file with the certificate and those of its authorities, found "),
        ("one.crt", "none", f"{KEY}: expected a PEM file with the certificate's private key, found "),
        ("text", "one.key", f"{CERT}: expected a PEM file with the certificate and those of its authorities, found "),
        ("one.crt", "one.crt", f"{KEY}: expected a PEM file with the certificate's private key, found "),
        ("one.crt", "two.key", f"{KEY}: expected the private key of the certificate in "),
        ("locked.crt", "locked.key", f"{KEY}: expected a key without a password, found "),
        ("broken", "one.key", f"{CERT}: expected a certificate and its key, found something unreadable in "),
        (".", "one.key", f"{CERT}: expected a PEM file with the certificate and those of its authorities, found "),
    ],
)
def test_files_that_make_no_certificate(authority: Authority, cert: str, key: str, said: str) -> None:
    with pytest.raises(LiveboardError) as caught:
        Certificate(str(authority.folder / cert), str(authority.folder / key))
    assert str(caught.value).startswith(said)
    assert "\n" not in str(caught.value)


def test_what_a_client_trusts(authority: Authority, tmp_path: Path) -> None:
    assert address("http://a", "k").tls is None
    assert address("wss://a", "k", str(authority.ca_file)).tls is not None
    for file, reason in ((tmp_path / "none", "No such file or directory"), (authority.folder / "text", "it has none")):
        with pytest.raises(LiveboardError) as caught:
            address("https://a", "k", str(file))
        assert str(caught.value) == f"ca_file: expected a PEM file with authorities, found {file}: {reason}"
