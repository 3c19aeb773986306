"""Which files make a certificate, and what is said of those that do not."""

from __future__ import annotations

from pathlib import Path

import pytest
from certificates import Authority

from liveboard.client.address import address
from liveboard.contract.errors import LiveboardError
from liveboard.serving.tls import Certificate


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With the certificates `one` and `two`, and `locked`, whose key has a password."""
    authority = Authority(tmp_path_factory.mktemp("tls"), "authority")
    for name, password in (("one", ""), ("two", ""), ("locked", "secret")):
        authority.issue(name, password=password)
    folder = authority.ca.parent
    (folder / "text").write_text("hello")
    (folder / "broken").write_text("-----BEGIN CERTIFICATE-----\nhello\n-----END CERTIFICATE-----\n")
    return folder


CERT, KEY = "server.tls_cert_file", "server.tls_key_file"


@pytest.mark.parametrize(
    ("cert", "key", "said"),
    [
        ("none", "one.key", f"{CERT}: expected a PEM file with the certificate and those of its authorities, found "),
        ("one.cert", "none", f"{KEY}: expected a PEM file with the certificate's private key, found "),
        ("text", "one.key", f"{CERT}: expected a PEM file with the certificate and those of its authorities, found "),
        ("one.cert", "one.cert", f"{KEY}: expected a PEM file with the certificate's private key, found "),
        ("one.cert", "two.key", f"{KEY}: expected the private key of the certificate in "),
        ("locked.cert", "locked.key", f"{KEY}: expected a key without a password, found "),
        ("broken", "one.key", f"{CERT}: expected a certificate and its key, found something unreadable in "),
        (".", "one.key", f"{CERT}: expected a PEM file with the certificate and those of its authorities, found "),
    ],
)
def test_files_that_make_no_certificate(folder: Path, cert: str, key: str, said: str) -> None:
    with pytest.raises(LiveboardError) as caught:
        Certificate(str(folder / cert), str(folder / key))
    assert str(caught.value).startswith(said)
    assert "\n" not in str(caught.value)


def test_what_a_client_trusts(folder: Path, tmp_path: Path) -> None:
    assert address("http://a", "k").tls is None
    assert address("wss://a", "k", str(folder / "ca.pem")).tls is not None
    for file, reason in ((tmp_path / "none", "No such file or directory"), (folder / "text", "it has none")):
        with pytest.raises(LiveboardError) as caught:
            address("https://a", "k", str(file))
        assert str(caught.value) == f"ca_file: expected a PEM file with authorities, found {file}: {reason}"
