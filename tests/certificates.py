"""An authority of the tests' own, and certificates that it has signed."""

from __future__ import annotations

import datetime
import ipaddress
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID

_DAY = datetime.timedelta(days=1)
_SIGNING = x509.KeyUsage(
    digital_signature=True,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    key_cert_sign=True,
    crl_sign=True,
    encipher_only=False,
    decipher_only=False,
)


class Certificate(NamedTuple):
    """PEM files: the certificate, its key, and both in one."""

    cert: Path
    key: Path
    both: Path


class Authority:
    """Signs certificates for people and for this machine."""

    def __init__(self, directory: Path, name: str) -> None:
        self._directory = directory / name
        self._directory.mkdir()
        self._name = _name(name)
        self._key = new_key()
        self.ca = self._directory / "ca.pem"
        self.ca.write_bytes(_pem(self._sign(self._name, self._key, _now() - 2 * _DAY, _now() + _DAY, is_ca=True)))

    def issue(self, name: str, *, expired: bool = False, password: str = "") -> Certificate:
        """A certificate for the name and for 127.0.0.1, which ends tomorrow or ended yesterday."""
        key = new_key()
        end = _now() - _DAY if expired else _now() + _DAY
        cert = _pem(self._sign(_name(name), key, _now() - 2 * _DAY, end, is_ca=False))
        secret = serialization.BestAvailableEncryption(password.encode()) if password else serialization.NoEncryption()
        key_pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, secret)
        files = Certificate(*[self._directory / f"{name}{'-expired' * expired}.{part}" for part in Certificate._fields])
        for file, content in zip(files, (cert, key_pem, key_pem + cert), strict=True):
            file.write_bytes(content)
        return files

    def _sign(
        self,
        subject: x509.Name,
        key: rsa.RSAPrivateKey,
        begin: datetime.datetime,
        end: datetime.datetime,
        *,
        is_ca: bool,
    ) -> x509.Certificate:
        here = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
        builder = x509.CertificateBuilder(self._name, subject, key.public_key(), x509.random_serial_number())
        builder = builder.not_valid_before(begin).not_valid_after(end)
        builder = builder.add_extension(x509.BasicConstraints(is_ca, None), critical=True)
        # From Python 3.13 on, clients insist on these.
        own, issuer = x509.SubjectKeyIdentifier, x509.AuthorityKeyIdentifier
        builder = builder.add_extension(own.from_public_key(key.public_key()), critical=False)
        builder = builder.add_extension(issuer.from_issuer_public_key(self._key.public_key()), critical=False)
        if is_ca:
            builder = builder.add_extension(_SIGNING, critical=True)
        else:
            builder = builder.add_extension(x509.SubjectAlternativeName([here]), critical=False)
        return builder.sign(self._key, hashes.SHA256())


def new_key() -> rsa.RSAPrivateKey:
    """A private key."""
    return rsa.generate_private_key(65537, 2048)


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)
