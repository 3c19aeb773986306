"""Who may look."""

from __future__ import annotations

import hashlib
import hmac

from liveboard.config import Secret
from liveboard.errors import LiveboardError


class Key:
    """The key that viewers need; comparing takes the same time however wrong a key is."""

    def __init__(self, psk: Secret) -> None:
        if not psk:
            raise LiveboardError(
                "server.psk: expected the key that viewers need, found nothing; set LIVEBOARD_SERVER_PSK, or "
                "LIVEBOARD_SERVER_PSK_FILE to a file that has it"
            )
        self._digest = _digest(psk.reveal())

    def opens(self, text: str) -> bool:
        """Whether the text is the key."""
        return hmac.compare_digest(self._digest, _digest(text))

    def opens_header(self, authorization: str | None) -> bool:
        """Whether an Authorization header carries the key: `Bearer <key>`."""
        scheme, _, text = (authorization or "").partition(" ")
        return scheme.lower() == "bearer" and self.opens(text.strip())


def _digest(text: str) -> bytes:
    # Of one length, so that the comparison does not tell the key's; surrogates can come in from JSON.
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
