"""A certificate authority in the hands of a test."""

from __future__ import annotations

import ipaddress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


class Authority:
    """Signs certificates for 127.0.0.1; `ca_file` is what clients trust."""

    def __init__(self, folder: Path, name: str = "test authority") -> None:
        self.folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name(name)
        usage = x509.BasicConstraints(ca=True, path_length=None)
        self._certificate = self._signed(self._name, self._key.public_key(), usage, "")
        self.ca_file = folder / f"{name}.pem"
        self.ca_file.write_bytes(self._certificate.public_bytes(serialization.Encoding.PEM))

    def issue(self, cert_file: Path, key_file: Path, name: str = "server", password: bytes | None = None) -> int:
        """Writes a certificate and its key; gives its serial number."""
        key = ec.generate_private_key(ec.SECP256R1())
        usage = x509.BasicConstraints(ca=False, path_length=None)
        certificate = self._signed(_name(name), key.public_key(), usage, "127.0.0.1")
        locked = serialization.BestAvailableEncryption(password) if password else serialization.NoEncryption()
        encoded = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, locked)
        cert_file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        key_file.write_bytes(encoded)
        return certificate.serial_number

    def _signed(
        self, subject: x509.Name, key: ec.EllipticCurvePublicKey, usage: x509.BasicConstraints, address: str
    ) -> x509.Certificate:
        now = datetime.now(UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(minutes=5))
            .not_valid_after(now + timedelta(days=1))
            .add_extension(usage, critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        )
        if usage.ca:
            signing = {"key_cert_sign": True, "crl_sign": True, "digital_signature": True}
            others = ("content_commitment", "key_encipherment", "data_encipherment", "key_agreement")
            rest = dict.fromkeys((*others, "encipher_only", "decipher_only"), False)
            builder = builder.add_extension(x509.KeyUsage(**signing, **rest), critical=True)
        if address:
            names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))])
            builder = builder.add_extension(names, critical=False)
        return builder.sign(self._key, hashes.SHA256())


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])
