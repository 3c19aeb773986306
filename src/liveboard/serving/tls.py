"""The server's certificate, which can be replaced while it runs."""

from __future__ import annotations

import asyncio
import logging
import ssl
from pathlib import Path

from liveboard.contract.errors import LiveboardError

_CERT, _KEY = "server.tls_cert_file", "server.tls_key_file"
_LOOK_EVERY_S = 1.0

_log = logging.getLogger(__name__)


class Certificate:
    """The newest certificate and key of two files that fit together; connections that are open keep theirs."""

    def __init__(self, cert_file: str, key_file: str) -> None:
        self._files = (cert_file, key_file)
        self._seen = self._look()
        self._newest = _context(cert_file, key_file)
        self.context = _context(cert_file, key_file)
        """For all connections: each of them gets the newest certificate when it begins."""
        self.context.sni_callback = self._choose

    async def follow(self, look_every_s: float = _LOOK_EVERY_S) -> None:
        """Takes the files again whenever they have changed and been left alone for a moment; never ends."""
        tried = self._seen
        while True:
            await asyncio.sleep(look_every_s)
            seen = await asyncio.to_thread(self._look)
            if seen != self._seen or seen == tried:
                self._seen = seen
                continue
            tried = seen
            try:
                self._newest = await asyncio.to_thread(_context, *self._files)
                _log.info("certificate taken", extra={"file": self._files[0]})
            except LiveboardError as error:
                _log.error("certificate not taken, the one before stays", extra={"reason": str(error)})

    def _choose(self, connection: ssl.SSLObject, _: str | None, __: ssl.SSLContext) -> None:
        connection.context = self._newest

    def _look(self) -> list[tuple[int, int, int] | None]:
        def look(file: str) -> tuple[int, int, int] | None:
            try:
                found = Path(file).stat()
            except OSError:
                return None
            return found.st_mtime_ns, found.st_size, found.st_ino

        return [look(file) for file in self._files]


def _context(cert_file: str, key_file: str) -> ssl.SSLContext:
    """A context with the certificate; a LiveboardError that says which file is wrong and how."""
    _check(_CERT, cert_file, "a PEM file with the certificate and those of its authorities", "BEGIN CERTIFICATE-----")
    _check(_KEY, key_file, "a PEM file with the certificate's private key", "PRIVATE KEY-----")
    is_locked = False

    def no_password() -> str:
        nonlocal is_locked
        is_locked = True
        return ""

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    try:
        context.load_cert_chain(cert_file, key_file, no_password)
    except (ssl.SSLError, OSError, ValueError) as error:
        if is_locked:
            raise LiveboardError(f"{_KEY}: expected a key without a password, found {key_file} with one") from None
        if getattr(error, "reason", "") == "KEY_VALUES_MISMATCH":
            raise LiveboardError(
                f"{_KEY}: expected the private key of the certificate in {cert_file}, found another in {key_file}"
            ) from None
        raise LiveboardError(
            f"{_CERT}: expected a certificate and its key, found something unreadable in {cert_file} or {key_file} "
            f"({error})"
        ) from None
    return context


def _check(name: str, file: str, expected: str, mark: str) -> None:
    try:
        text = Path(file).read_text("latin-1")
    except OSError as error:
        raise LiveboardError(f"{name}: expected {expected}, found {file}: {error.strerror}") from None
    if mark not in text:
        raise LiveboardError(f"{name}: expected {expected}, found {file} without one")
