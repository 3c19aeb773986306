"""Links that log a browser in once, so that nobody has to type the key.

A link's token is signed with the key, so that whoever has the key can make one without asking the server. It travels
in the part of the address that browsers keep to themselves, and is exchanged for the key by a POST: no log has it.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import secrets
import threading
import time
from pathlib import Path

from liveboard.config import Secret

_log = logging.getLogger(__name__)

LIFE_S = 600.0
_NONCE_BYTES = 12


def make_token(key: Secret, life_s: float = LIFE_S) -> str:
    """A token for one login."""
    claim = f"{time.time() + life_s:.0f}.{secrets.token_urlsafe(_NONCE_BYTES)}"
    return f"{claim}.{_signature(key, claim)}"


class Logins:
    """Exchanges tokens for the key, each once, also after a restart if there is a file to remember them in."""

    def __init__(self, key: Secret, file: Path | None = None) -> None:
        self._key = key
        self._file = file
        self._lock = threading.Lock()
        self._used = _remembered(file)

    def exchange(self, token: str) -> Secret | None:
        """The key; None if the token is forged, too old or used, or if there is no key to give."""
        claim, _, signature = token.rpartition(".")
        if not self._key or not hmac.compare_digest(
            signature.encode("utf-8", "surrogatepass"), _signature(self._key, claim).encode()
        ):
            return None
        end, now = float(claim.partition(".")[0]), time.time()
        with self._lock:
            if end <= now or claim in self._used:
                return None
            self._used = {other: until for other, until in self._used.items() if until > now} | {claim: end}
            self._remember()
        return self._key

    def _remember(self) -> None:
        if self._file is None:
            return
        part = self._file.with_suffix(".part")
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            part.write_text(json.dumps(self._used))
            part.replace(self._file)
        except OSError as error:
            # The link stays used for as long as this process lives.
            _log.warning("used login link not remembered", extra={"file": self._file, "reason": error.strerror})


def _remembered(file: Path | None) -> dict[str, float]:
    try:
        found = json.loads(file.read_text()) if file else {}
        return {str(claim): float(end) for claim, end in found.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def _signature(key: Secret, claim: str) -> str:
    signed = f"login {claim}".encode("utf-8", "surrogatepass")
    return hmac.new(key.reveal().encode("utf-8", "surrogatepass"), signed, hashlib.sha256).hexdigest()
