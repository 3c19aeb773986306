"""Links that log a browser in once, so that nobody has to type the key.

A link's token is signed with the key, so that whoever has the key can make one without asking the server. It travels
in the part of the address that browsers keep to themselves, and is exchanged for the key by a POST: no log has it.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time

from liveboard.config import Secret

LIFE_S = 600.0
_NONCE_BYTES = 12


def make_token(key: Secret, life_s: float = LIFE_S) -> str:
    """A token for one login."""
    claim = f"{time.time() + life_s:.0f}.{secrets.token_urlsafe(_NONCE_BYTES)}"
    return f"{claim}.{_signature(key, claim)}"


class Logins:
    """Exchanges tokens for the key, each once."""

    def __init__(self, key: Secret) -> None:
        self._key = key
        self._used: dict[str, float] = {}

    def exchange(self, token: str) -> Secret | None:
        """The key; None if the token is forged, too old or used."""
        now = time.time()
        self._used = {claim: end for claim, end in self._used.items() if end > now}
        claim, _, signature = token.rpartition(".")
        if not hmac.compare_digest(signature.encode(), _signature(self._key, claim).encode()) or claim in self._used:
            return None
        end = float(claim.partition(".")[0])
        if end <= now:
            return None
        self._used[claim] = end
        return self._key


def _signature(key: Secret, claim: str) -> str:
    return hmac.new(key.reveal().encode(), f"login {claim}".encode(), hashlib.sha256).hexdigest()
